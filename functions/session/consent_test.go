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
	before := len(h.Events(""))
	var s seen
	h.Must(200, "POST", "/session/consent", cookie, `{"consentTelemetry":false}`).Into(t, &s)
	if s.Flags.ConsentTelemetry || s.Flags.ConsentMarketing {
		t.Errorf("%+v", s.Flags)
	}
	noise := func() {
		h.Must(200, "POST", "/session/locale", cookie, `{"locale":"ar"}`)
		h.Must(200, "POST", "/session/locale", cookie, `{"locale":"fr"}`)
		h.session(cookie, "X-Currency", "EUR")
		h.session(cookie, "X-Currency", "AFN")
		h.live(cookie)
	}
	noise()
	h.RDB.FlushAll(t.Context())
	if s := h.session(cookie); s.ID != cookie || s.Flags.ConsentTelemetry {
		t.Errorf("Redis is lost, and the refusal with it: %+v", s)
	}
	if n := len(h.Events("")); n != before {
		t.Errorf("%d events more", n-before)
	}
	h.Must(200, "POST", "/session/consent", cookie, `{"consentMarketing":true}`).Into(t, &s)
	if s.Flags.ConsentTelemetry || !s.Flags.ConsentMarketing {
		t.Errorf("%+v", s.Flags)
	}
	h.Must(200, "POST", "/session/consent", cookie, `{"consentTelemetry":true}`)
	h.Must(200, "POST", "/session/locale", cookie, `{"locale":"ru"}`)
	if n := len(h.Events("")); n != before+1 {
		t.Errorf("after consent %d events more", n-before)
	}
}

func TestARefusalStopsEventsOfRequestsThatRan(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	before := len(h.Events(""))
	once := sync.OnceFunc(func() { h.Must(200, "POST", "/session/consent", cookie, `{"consentTelemetry":false}`) })
	h.visit(cookie, func(context.Context, *session.Session, redis.Pipeliner) *session.HistoryEntry {
		once() // between the visit's beginning and its end
		return nil
	})
	if n := len(h.Events("")); n != before {
		t.Errorf("%d events more", n-before)
	}
}

func TestAFirstWordThatRefusesLeavesNoEvent(t *testing.T) {
	h := newHouse(t)
	cookie := h.Must(200, "POST", "/session/consent", "", `{"consentTelemetry":false}`).Cookie()
	if n := len(h.Events("")); n != 0 {
		t.Errorf("%d events", n)
	}
	if s := h.session(cookie); s.Flags.ConsentTelemetry {
		t.Errorf("%+v", s)
	}
}

func TestConsentWithoutRedisIsOnRecord(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	before := len(h.Events(""))
	h.Redis.Stop()
	var s seen
	h.Must(200, "POST", "/session/consent", cookie, `{"consentTelemetry":false}`).Into(t, &s)
	if s.Flags.ConsentTelemetry || len(s.Degraded) != 1 || s.Degraded[0].Part != "session" {
		t.Errorf("%+v", s)
	}
	h.Redis.Start()
	h.Eventually("the guest is known again", func() bool {
		var s seen
		a := h.Ask("GET", "/session", cookie, "")
		a.Into(t, &s)
		return len(s.Degraded) == 0 && !s.Flags.ConsentTelemetry
	})
	h.Must(200, "POST", "/session/locale", cookie, `{"locale":"ar"}`)
	if n := len(h.Events("")); n != before {
		t.Errorf("%d events more", n-before)
	}
}

func TestAMissedRefusalIsRepairedByTheNextRead(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	h.Exec(`INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at) VALUES ($1, false, true, now())`, cookie)
	if s := h.session(cookie); s.Flags.ConsentTelemetry || !s.Flags.ConsentMarketing {
		t.Errorf("%+v", s.Flags)
	}
	if got := h.RDB.HGet(t.Context(), h.Parts.Keys.Session(cookie), "consentTelemetry").Val(); got != "0" {
		t.Errorf("in Redis: %s", got)
	}
}
