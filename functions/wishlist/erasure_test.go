package wishlist

import (
	"context"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/session"
)

func TestWishlist_NextRequestCompletesPartialErasure(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]string{"GET /wishlist": "", "POST /wishlist": addBody(2), "DELETE /wishlist/" + propertyID(2): ""} {
		h := newHarness(t)
		cookie := h.newGuest()
		h.MustDo(201, "POST", "/wishlist", cookie, addBody(1))
		if err := h.Deps.Eraser.Begin(t.Context(), &session.Session{ID: cookie}); err != nil {
			t.Fatal(err)
		}
		method, path, _ := strings.Cut(path, " ")
		a := h.Do(method, path, cookie, body)
		if a.StatusCode != 503 || a.Header.Get("Retry-After") == "" || !strings.Contains(a.Text, "cleared") {
			t.Errorf(`%s %s: got %d %s; want status 503, non-empty Retry-After, body containing "cleared"`, method, path, a.StatusCode, a.Text)
		}
		for _, key := range h.Deps.Redis.Keys(context.Background(), "*"+cookie+"*").Val() {
			if !strings.HasSuffix(key, ":cleared") {
				t.Errorf("%s %s: got key %s; want it erased", method, path, key)
			}
		}
		if a := h.Do(method, path, cookie, body); a.StatusCode >= 400 || a.SessionCookie() == "" || a.SessionCookie() == cookie {
			t.Errorf("%s %s: got %d as %q; want the cookie of a session other than %s", method, path, a.StatusCode, a.SessionCookie(), cookie)
		}
	}
}
