package session

import (
	"context"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/session"
)

func TestSessionConsent_OptOutStopsEventsAtOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	before := len(h.Events(""))
	var s sessionBody
	h.MustDo(200, "POST", "/session/consent", cookie, `{"consentTelemetry":false}`).Decode(t, &s)
	if s.Flags.ConsentTelemetry || s.Flags.ConsentMarketing {
		t.Errorf("got %+v; want not Flags.ConsentTelemetry, not Flags.ConsentMarketing", s.Flags)
	}
	runRequests := func() {
		h.MustDo(200, "POST", "/session/locale", cookie, `{"locale":"ar"}`)
		h.MustDo(200, "POST", "/session/locale", cookie, `{"locale":"fr"}`)
		h.getSession(cookie, "X-Currency", "EUR")
		h.getSession(cookie, "X-Currency", "AFN")
		h.populate(cookie)
	}
	runRequests()
	h.RDB.FlushAll(t.Context())
	if s := h.getSession(cookie); s.ID != cookie || s.Flags.ConsentTelemetry {
		t.Errorf("after a loss in Redis: got %+v; want the opt-out", s)
	}
	if n := len(h.Events("")); n != before {
		t.Errorf("got %d events more; want 0", n-before)
	}
	h.MustDo(200, "POST", "/session/consent", cookie, `{"consentMarketing":true}`).Decode(t, &s)
	if s.Flags.ConsentTelemetry || !s.Flags.ConsentMarketing {
		t.Errorf("got %+v; want not Flags.ConsentTelemetry, Flags.ConsentMarketing", s.Flags)
	}
	h.MustDo(200, "POST", "/session/consent", cookie, `{"consentTelemetry":true}`)
	h.MustDo(200, "POST", "/session/locale", cookie, `{"locale":"ru"}`)
	if n := len(h.Events("")); n != before+1 {
		t.Errorf("after consent: got %d events more; want 1", n-before)
	}
}

func TestSessionConsent_OptOutStopsEventsOfRunningRequests(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	before := len(h.Events(""))
	once := sync.OnceFunc(func() { h.MustDo(200, "POST", "/session/consent", cookie, `{"consentTelemetry":false}`) })
	h.runRequest(cookie, func(context.Context, *session.Session, redis.Pipeliner) *session.HistoryEntry {
		once() // between Begin and Finish of the other request
		return nil
	})
	if n := len(h.Events("")); n != before {
		t.Errorf("got %d events more; want 0", n-before)
	}
}

func TestSessionConsent_OptOutAsFirstRequestEmitsNoEvent(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.MustDo(200, "POST", "/session/consent", "", `{"consentTelemetry":false}`).SessionCookie()
	if n := len(h.Events("")); n != 0 {
		t.Errorf("got %d events; want 0", n)
	}
	if s := h.getSession(cookie); s.Flags.ConsentTelemetry {
		t.Errorf("got %+v; want not Flags.ConsentTelemetry", s)
	}
}

func TestSessionConsent_RecordedWithoutRedis(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	before := len(h.Events(""))
	h.Redis.Stop()
	var s sessionBody
	h.MustDo(200, "POST", "/session/consent", cookie, `{"consentTelemetry":false}`).Decode(t, &s)
	if s.Flags.ConsentTelemetry || len(s.Degraded) != 1 || s.Degraded[0].Part != "session" {
		t.Errorf(`got %+v; want not Flags.ConsentTelemetry, len(Degraded) = 1, Degraded[0].Part = "session"`, s)
	}
	h.Redis.Start()
	h.Eventually("the session is complete after Redis is back", func() bool {
		var s sessionBody
		a := h.Do("GET", "/session", cookie, "")
		a.Decode(t, &s)
		return len(s.Degraded) == 0 && !s.Flags.ConsentTelemetry
	})
	h.MustDo(200, "POST", "/session/locale", cookie, `{"locale":"ar"}`)
	if n := len(h.Events("")); n != before {
		t.Errorf("got %d events more; want 0", n-before)
	}
}

func TestSessionConsent_NextReadRepairsRedis(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	h.Exec(`INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at) VALUES ($1, false, true, now())`, cookie)
	if s := h.getSession(cookie); s.Flags.ConsentTelemetry || !s.Flags.ConsentMarketing {
		t.Errorf("got %+v; want not Flags.ConsentTelemetry, Flags.ConsentMarketing", s.Flags)
	}
	if got := h.RDB.HGet(t.Context(), h.Deps.Keys.Session(cookie), "consentTelemetry").Val(); got != "0" {
		t.Errorf("consentTelemetry in Redis: got %q; want 0", got)
	}
}
