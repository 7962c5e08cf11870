package session

import (
	"context"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

func TestSession_RedisLossDuringRequestIsNotErasure(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	wipe := func() {
		redistest.AfterNextPipeline(h.Deps.Redis, func() { h.Deps.Redis.FlushAll(context.Background()) })
	}
	wipe()
	if a := h.MustDo(200, "GET", "/session", cookie, "", "Accept-Language", "ar"); a.SessionCookie() != cookie {
		t.Errorf("got cookie %q; want %q", a.SessionCookie(), cookie)
	}
	h.getSession(cookie)
	wipe()
	if a := h.Do("POST", "/session/locale", cookie, `{"locale":"ru"}`); a.StatusCode != 503 || strings.Contains(a.Text, "cleared") {
		// Redis lost the session, which is no erasure
		t.Errorf(`got %d %s; want status 503, body without "cleared"`, a.StatusCode, a.Text)
	}
	a := h.MustDo(200, "POST", "/session/locale", cookie, `{"locale":"ru"}`)
	if a.SessionCookie() != cookie {
		t.Errorf("got cookie %q; want %q", a.SessionCookie(), cookie)
	}
}
