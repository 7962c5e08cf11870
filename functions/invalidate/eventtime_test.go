package invalidate

import (
	"fmt"
	"testing"
	"time"
)

func TestTenantSuspended_QuarantinesEventsMoreThanADayAhead(t *testing.T) {
	h := newHarness(t)
	now := time.Date(2020, 11, 20, 12, 0, 0, 0, time.UTC)
	h.handlers.now = func() time.Time { return now }
	far, day := time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC), now.Add(24*time.Hour)
	for name, change := range map[string]func(string, time.Time) platformEvent{"suspendedAt": suspendedEvent, "reinstatedAt": reinstatedEvent} {
		tenant := newTenantID()
		h.mustProcess(suspendedEvent(tenant, now))
		for _, at := range []time.Time{far, day.Add(time.Millisecond)} {
			before := h.countQuarantined()
			got := h.deliver(change(tenant, at))
			if got.Outcome != "parked" || got.Reason != "the event is invalid: payload."+name+": more than a day ahead" {
				t.Errorf("%s %s: %+v", name, at, got)
			}
			if record := h.lastLogRecord(); record["alarm"] != "inbox-parked" || record["severity"] != "ERROR" || h.countQuarantined() != before+1 {
				t.Errorf("%s %s: %v", name, at, record)
			}
		}
		h.mustProcess(reinstatedEvent(tenant, now.Add(time.Second)))
		if h.isSuspended(tenant) {
			t.Errorf("%s: the far future holds", name)
		}
		h.mustProcess(change(tenant, day)) // a clock may be wrong by so much
		if want := name == "suspendedAt"; h.isSuspended(tenant) != want {
			t.Errorf("%s, a day ahead: %v", name, !want)
		}
	}
	early := suspendedEvent(newTenantID(), now.Add(48*time.Hour))
	if got := h.deliver(early); got.Outcome != "parked" {
		t.Errorf("%+v", got)
	}
	now = now.Add(24 * time.Hour)
	h.mustProcess(early) // published again, when it is time
}

func TestEventTime_AcceptsAllRFC3339Forms(t *testing.T) {
	h := newHarness(t)
	for said, want := range map[string]string{
		"2020-11-20t12:00:00z":          "2020-11-20T12:00:00Z",
		"2020-11-20t12:00:00.25+04:30":  "2020-11-20T07:30:00.25Z",
		"2016-12-31T23:59:60Z":          "2016-12-31T23:59:59.999999Z",
		"2017-01-01t04:29:60.123+04:30": "2016-12-31T23:59:59.999999Z",
	} {
		tenant := newTenantID()
		h.mustProcess(newPlatformEvent("tenant-suspended", fmt.Sprintf(`{"tenantId":%q,"reason":%q,"suspendedAt":%q}`, tenant, said, said)))
		at := queryValue[time.Time](h, `SELECT suspended_at FROM bff_consumer.tenant_suspended_cache WHERE reason = $1`, said)
		if got := at.UTC().Format(time.RFC3339Nano); !h.isSuspended(tenant) || got != want {
			t.Errorf("%s is read as %s, not %s", said, got, want)
		}
		h.mustProcess(newPlatformEvent("tenant-reinstated", fmt.Sprintf(`{"tenantId":%q,"reinstatedAt":%q}`, tenant, "2020-11-20t12:00:01z")))
		if h.isSuspended(tenant) {
			t.Errorf("%s, reinstated: still suspended", said)
		}
	}
}
