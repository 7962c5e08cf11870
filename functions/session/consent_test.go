package session

import (
	"context"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/session"
)

func TestARefusalStopsEveryEventAtOnce(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	before := len(h.events(""))
	var s seen
	h.must(200, "POST", "/session/consent", cookie, `{"consentTelemetry":false}`).into(t, &s)
	if s.Flags.ConsentTelemetry || s.Flags.ConsentMarketing {
		t.Errorf("%+v", s.Flags)
	}
	noise := func() {
		h.must(200, "POST", "/session/locale", cookie, `{"locale":"ar"}`)
		h.must(200, "POST", "/session/locale", cookie, `{"locale":"fr"}`)
		h.session(cookie, "X-Currency", "EUR")
		h.session(cookie, "X-Currency", "AFN")
		h.live(cookie)
	}
	noise()
	h.parts.Redis.FlushAll(t.Context())
	if s := h.session(cookie); s.ID != cookie || s.Flags.ConsentTelemetry {
		t.Errorf("Redis is lost, and the refusal with it: %+v", s)
	}
	if n := len(h.events("")); n != before {
		t.Errorf("%d events more", n-before)
	}
	h.must(200, "POST", "/session/consent", cookie, `{"consentMarketing":true}`).into(t, &s)
	if s.Flags.ConsentTelemetry || !s.Flags.ConsentMarketing {
		t.Errorf("%+v", s.Flags)
	}
	h.must(200, "POST", "/session/consent", cookie, `{"consentTelemetry":true}`)
	h.must(200, "POST", "/session/locale", cookie, `{"locale":"ru"}`)
	if n := len(h.events("")); n != before+1 {
		t.Errorf("after consent %d events more", n-before)
	}
}

func TestARefusalStopsEventsOfRequestsThatRan(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	before := len(h.events(""))
	once := sync.OnceFunc(func() { h.must(200, "POST", "/session/consent", cookie, `{"consentTelemetry":false}`) })
	h.visit(cookie, func(context.Context, *session.Session, redis.Pipeliner) *session.HistoryEntry {
		once() // between the visit's beginning and its end
		return nil
	})
	if n := len(h.events("")); n != before {
		t.Errorf("%d events more", n-before)
	}
}

func TestAFirstWordThatRefusesLeavesNoEvent(t *testing.T) {
	h := newHouse(t)
	cookie := h.must(200, "POST", "/session/consent", "", `{"consentTelemetry":false}`).cookie()
	if n := len(h.events("")); n != 0 {
		t.Errorf("%d events", n)
	}
	if s := h.session(cookie); s.Flags.ConsentTelemetry {
		t.Errorf("%+v", s)
	}
}

func TestConsentWithoutRedisIsOnRecord(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	before := len(h.events(""))
	h.redis.Stop()
	var s seen
	h.must(200, "POST", "/session/consent", cookie, `{"consentTelemetry":false}`).into(t, &s)
	if s.Flags.ConsentTelemetry || len(s.Degraded) != 1 || s.Degraded[0].Part != "session" {
		t.Errorf("%+v", s)
	}
	h.redis.Start()
	h.eventually("the guest is known again", func() bool {
		var s seen
		a := h.do("GET", "/session", cookie, "")
		a.into(t, &s)
		return len(s.Degraded) == 0 && !s.Flags.ConsentTelemetry
	})
	h.must(200, "POST", "/session/locale", cookie, `{"locale":"ar"}`)
	if n := len(h.events("")); n != before {
		t.Errorf("%d events more", n-before)
	}
}

func TestAMissedRefusalIsRepairedByTheNextRead(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	h.exec(`INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at) VALUES ($1, false, true, now())`, cookie)
	if s := h.session(cookie); s.Flags.ConsentTelemetry || !s.Flags.ConsentMarketing {
		t.Errorf("%+v", s.Flags)
	}
	if got := h.parts.Redis.HGet(t.Context(), h.parts.Keys.Session(cookie), "consentTelemetry").Val(); got != "0" {
		t.Errorf("in Redis: %s", got)
	}
}
