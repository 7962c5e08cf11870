package wishlist

import (
	"context"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/session"
)

func TestAClearThatDiedHalfWayIsFinishedByWhoeverComes(t *testing.T) {
	for path, body := range map[string]string{"GET /wishlist": "", "POST /wishlist": wish(2), "DELETE /wishlist/" + propertyID(2): ""} {
		h := newHouse(t)
		cookie := h.guest()
		h.Must(201, "POST", "/wishlist", cookie, wish(1))
		if err := h.Parts.Burial.Bury(t.Context(), &session.Session{ID: cookie}); err != nil {
			t.Fatal(err)
		}
		method, path, _ := strings.Cut(path, " ")
		a := h.Ask(method, path, cookie, body)
		if a.StatusCode != 503 || a.Header.Get("Retry-After") == "" || !strings.Contains(a.Text, "cleared") {
			t.Errorf("%s %s: %d %s", method, path, a.StatusCode, a.Text)
		}
		for _, key := range h.Parts.Redis.Keys(context.Background(), "*"+cookie+"*").Val() {
			if !strings.HasSuffix(key, ":cleared") {
				t.Errorf("%s %s: left: %s", method, path, key)
			}
		}
		if a := h.Ask(method, path, cookie, body); a.StatusCode >= 400 || a.Cookie() == "" || a.Cookie() == cookie {
			t.Errorf("%s %s: %d as %q", method, path, a.StatusCode, a.Cookie())
		}
	}
}
