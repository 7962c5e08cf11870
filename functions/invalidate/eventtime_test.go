package invalidate

import (
	"fmt"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"testing"
	"time"
)

func TestTenantSuspended_QuarantinesEventsMoreThanADayAhead(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	now := time.Date(2020, 11, 20, 12, 0, 0, 0, time.UTC)
	h.Set(now)
	far, day := time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC), now.Add(24*time.Hour)
	for name, change := range map[string]func(string, time.Time) functest.PlatformEvent{"suspendedAt": suspendedEvent, "reinstatedAt": reinstatedEvent} {
		tenant := newTenantID()
		h.mustProcess(suspendedEvent(tenant, now))
		for _, at := range []time.Time{far, day.Add(time.Millisecond)} {
			before := h.Quarantined()
			got := h.deliver(change(tenant, at))
			if got.Outcome != "parked" || got.Reason != "the event is invalid: payload."+name+": more than a day ahead" {
				t.Errorf("%s %s: got %+v, want it quarantined", name, at, got)
			}
			h.expectLogRecord(map[string]any{"alarm": "inbox-parked", "severity": "ERROR"})
			if n := h.Quarantined() - before; n != 1 {
				t.Errorf("%s %s: got %d quarantined messages, want 1", name, at, n)
			}
		}
		h.mustProcess(reinstatedEvent(tenant, now.Add(time.Second)))
		h.expectSuspended(tenant, false)
		h.mustProcess(change(tenant, day)) // a clock may be a day ahead
		h.expectSuspended(tenant, name == "suspendedAt")
	}
	early := suspendedEvent(newTenantID(), now.Add(48*time.Hour))
	if got := h.deliver(early); got.Outcome != "parked" {
		t.Errorf("got %+v, want outcome parked", got)
	}
	h.Advance(24 * time.Hour)
	h.mustProcess(early) // published again, when the time is valid
}

func TestEventTime_AcceptsAllRFC3339Forms(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for text, want := range map[string]string{
		"2020-11-20t12:00:00z":          "2020-11-20T12:00:00Z",
		"2020-11-20t12:00:00.25+04:30":  "2020-11-20T07:30:00.25Z",
		"2016-12-31T23:59:60Z":          "2016-12-31T23:59:59.999999Z",
		"2017-01-01t04:29:60.123+04:30": "2016-12-31T23:59:59.999999Z",
	} {
		tenant := newTenantID()
		h.mustProcess(functest.NewPlatformEvent(subjectTenantSuspended, fmt.Sprintf(`{"tenantId":%q,"reason":%q,"suspendedAt":%q}`, tenant, text, text)))
		at := queryValue[time.Time](h, `SELECT suspended_at FROM bff_consumer.tenant_suspended_cache WHERE reason = $1`, text)
		h.expectSuspended(tenant, true)
		if got := at.UTC().Format(time.RFC3339Nano); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
		h.mustProcess(functest.NewPlatformEvent(subjectTenantReinstated, fmt.Sprintf(`{"tenantId":%q,"reinstatedAt":%q}`, tenant, "2020-11-20t12:00:01z")))
		h.expectSuspended(tenant, false)
	}
}
