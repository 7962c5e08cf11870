package session

import (
	"context"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/session"
)

// startErasure erases the session in Postgres only, like a clear that ends before Redis.
func (h *harness) startErasure(cookie string) {
	h.T.Helper()
	if err := h.Deps.Eraser.Begin(context.Background(), &session.Session{ID: cookie}); err != nil {
		h.T.Fatal(err)
	}
}

func TestSession_NextRequestCompletesPartialErasure(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]string{
		"GET /session": "", "GET /session/export": "", "POST /session/locale": `{"locale":"ar"}`, "POST /session/currency": `{"currency":"AED"}`,
		"POST /session/consent": `{"consentTelemetry":true}`,
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t)
			cookie := h.newGuest()
			h.populate(cookie)
			h.startErasure(cookie)
			method, path, _ := strings.Cut(path, " ")
			a := h.Do(method, path, cookie, body)
			if a.StatusCode != 503 || a.Header.Get("Retry-After") == "" || !strings.Contains(a.Text, "cleared") {
				t.Errorf(`got %d %s; want status 503, non-empty Retry-After, body containing "cleared"`, a.StatusCode, a.Text)
			}
			if left := h.remaining(cookie); len(left) != 0 {
				t.Errorf("got %v; want everything erased", left)
			}
			if n := h.Deps.Redis.Exists(t.Context(), h.Deps.Keys.Key("idem", "c-"+cookie)).Val(); n != 0 {
				t.Errorf("the copy of an idempotent answer was not erased")
			}
			if a := h.MustDo(200, method, path, cookie, body); a.SessionCookie() == "" || a.SessionCookie() == cookie {
				t.Errorf("got cookie %q; want another session than %q", a.SessionCookie(), cookie)
			}
		})
	}
}
