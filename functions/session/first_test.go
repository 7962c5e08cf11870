package session

import (
	"context"
	"testing"
)

func TestARefusedFirstRequestIsNotTold(t *testing.T) {
	h := newHouse(t)
	h.Redis.Break()
	for path, body := range map[string]string{"/session/locale": `{"locale":"ru"}`, "/session/currency": `{"currency":"AED"}`} {
		if a := h.Ask("POST", path, "", body); a.StatusCode != 503 {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.Text)
		}
	}
	if n := len(h.Events("")); n != 0 {
		t.Errorf("%d events of sessions that nobody has", n)
	}
	if a := h.Must(200, "POST", "/session/consent", "", `{"consentMarketing":true}`); a.Cookie() == "" || len(h.Events("session.started")) != 1 {
		t.Errorf("what needs no Redis: %q, %d", a.Cookie(), len(h.Events("session.started")))
	}
	h.Redis.Heal()
	h.Eventually("Redis is back", func() bool { return h.Parts.Redis.Ping(context.Background()).Err() == nil })
	if h.guest() == "" || len(h.Events("session.started")) != 2 {
		t.Errorf("%d events", len(h.Events("session.started")))
	}
}
