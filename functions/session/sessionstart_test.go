package session

import (
	"context"
	"testing"
)

func TestSession_FailedFirstRequestEmitsNoEvent(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.Redis.Break()
	for path, body := range map[string]string{"/session/locale": `{"locale":"ru"}`, "/session/currency": `{"currency":"AED"}`} {
		t.Run(path, func(t *testing.T) {
			if a := h.Do("POST", path, "", body); a.StatusCode != 503 {
				t.Errorf("got %d %s; want status 503", a.StatusCode, a.Text)
			}
		})
	}
	if n := len(h.Events("")); n != 0 {
		t.Errorf("got %d events of refused first requests; want 0", n)
	}
	if a := h.MustDo(200, "POST", "/session/consent", "", `{"consentMarketing":true}`); a.SessionCookie() == "" || len(h.Events("session.started")) != 1 {
		t.Errorf("consent without Redis: got cookie %q, %d session.started events; want a cookie and 1", a.SessionCookie(), len(h.Events("session.started")))
	}
	h.Redis.Heal()
	h.Eventually("Redis is back", func() bool { return h.Deps.Redis.Ping(context.Background()).Err() == nil })
	if h.newGuest() == "" || len(h.Events("session.started")) != 2 {
		t.Errorf("got %d session.started events; want 2", len(h.Events("session.started")))
	}
}
