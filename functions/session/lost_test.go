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
	wipe := func() { redistest.After(h.Parts.Redis, func() { h.Parts.Redis.FlushAll(context.Background()) }) }
	wipe()
	if a := h.Must(200, "GET", "/session", cookie, "", "Accept-Language", "ar"); a.Cookie() != cookie {
		t.Errorf("the guest is %q now", a.Cookie())
	}
	h.session(cookie)
	wipe()
	if a := h.Ask("POST", "/session/locale", cookie, `{"locale":"ru"}`); a.StatusCode != 503 || strings.Contains(a.Text, "cleared") {
		t.Errorf("%d %s", a.StatusCode, a.Text) // it is not saved, and the guest is told the truth
	}
	a := h.Must(200, "POST", "/session/locale", cookie, `{"locale":"ru"}`)
	if a.Cookie() != cookie {
		t.Errorf("the guest is %q then", a.Cookie())
	}
}
