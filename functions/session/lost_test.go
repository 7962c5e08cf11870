package session

import (
	"context"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
)

func TestASessionThatRedisLosesUnderARequestIsNotTakenForCleared(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	wipe := func() { redistest.After(h.parts.Redis, func() { h.parts.Redis.FlushAll(context.Background()) }) }
	wipe()
	if a := h.must(200, "GET", "/session", cookie, "", "Accept-Language", "ar"); a.cookie() != cookie {
		t.Errorf("the guest is %q now", a.cookie())
	}
	h.session(cookie)
	wipe()
	if a := h.do("POST", "/session/locale", cookie, `{"locale":"ru"}`); a.StatusCode != 503 || strings.Contains(string(a.body), "cleared") {
		t.Errorf("%d %s", a.StatusCode, a.body) // it is not saved, and the guest is told the truth
	}
	a := h.must(200, "POST", "/session/locale", cookie, `{"locale":"ru"}`)
	if a.cookie() != cookie {
		t.Errorf("the guest is %q then", a.cookie())
	}
}
