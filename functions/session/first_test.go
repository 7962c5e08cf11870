package session

import (
	"context"
	"testing"
)

func TestARefusedFirstRequestIsNotTold(t *testing.T) {
	h := newHouse(t)
	h.redis.Break()
	for path, body := range map[string]string{"/session/locale": `{"locale":"ru"}`, "/session/currency": `{"currency":"AED"}`} {
		if a := h.do("POST", path, "", body); a.StatusCode != 503 {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.body)
		}
	}
	if n := len(h.events("")); n != 0 {
		t.Errorf("%d events of sessions that nobody has", n)
	}
	if a := h.must(200, "POST", "/session/consent", "", `{"consentMarketing":true}`); a.cookie() == "" || len(h.events("session.started")) != 1 {
		t.Errorf("what needs no Redis: %q, %d", a.cookie(), len(h.events("session.started")))
	}
	h.redis.Heal()
	h.eventually("Redis is back", func() bool { return h.parts.Redis.Ping(context.Background()).Err() == nil })
	if h.guest() == "" || len(h.events("session.started")) != 2 {
		t.Errorf("%d events", len(h.events("session.started")))
	}
}
