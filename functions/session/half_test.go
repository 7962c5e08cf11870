package session

import (
	"context"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/session"
)

// bury is a clear that dies before it comes to Redis.
func (h *house) bury(cookie string) {
	h.T.Helper()
	if err := h.Parts.Burial.Bury(context.Background(), &session.Session{ID: cookie}); err != nil {
		h.T.Fatal(err)
	}
}

func TestAClearThatDiedHalfWayIsFinishedByWhoeverComes(t *testing.T) {
	for path, body := range map[string]string{
		"GET /session": "", "GET /session/export": "", "POST /session/locale": `{"locale":"ar"}`, "POST /session/currency": `{"currency":"AED"}`,
		"POST /session/consent": `{"consentTelemetry":true}`,
	} {
		h := newHouse(t)
		cookie := h.guest()
		h.live(cookie)
		h.bury(cookie)
		method, path, _ := strings.Cut(path, " ")
		a := h.Ask(method, path, cookie, body)
		if a.StatusCode != 503 || a.Header.Get("Retry-After") == "" || !strings.Contains(a.Text, "cleared") {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.Text)
		}
		if left := h.left(cookie); len(left) != 0 {
			t.Errorf("%s: left: %v", path, left)
		}
		if n := h.Parts.Redis.Exists(t.Context(), h.Parts.Keys.Key("idem", "c-"+cookie)).Val(); n != 0 {
			t.Errorf("%s: the copy of an answer is left", path)
		}
		if a := h.Must(200, method, path, cookie, body); a.Cookie() == "" || a.Cookie() == cookie {
			t.Errorf("%s: goes on as %q", path, a.Cookie())
		}
	}
}
