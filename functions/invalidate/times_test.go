package invalidate

import (
	"fmt"
	"testing"
	"time"
)

func TestWhatIsMoreThanADayAheadIsParkedAndChangesNothing(t *testing.T) {
	h := newHouse(t)
	now := time.Date(2020, 11, 20, 12, 0, 0, 0, time.UTC)
	h.parts.now = func() time.Time { return now }
	far, day := time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC), now.Add(24*time.Hour)
	for name, change := range map[string]func(string, time.Time) told{"suspendedAt": suspension, "reinstatedAt": reinstatement} {
		tenant := newTenant()
		h.done(suspension(tenant, now))
		for _, at := range []time.Time{far, day.Add(time.Millisecond)} {
			before := h.parked()
			got := h.deliver(change(tenant, at))
			if got.Outcome != "parked" || got.Reason != "the event is wrong: payload."+name+": more than a day ahead" {
				t.Errorf("%s %s: %+v", name, at, got)
			}
			if record := h.logged(); record["alarm"] != "inbox-parked" || record["severity"] != "ERROR" || h.parked() != before+1 {
				t.Errorf("%s %s: %v", name, at, record)
			}
		}
		h.done(reinstatement(tenant, now.Add(time.Second)))
		if h.shown(tenant) {
			t.Errorf("%s: the far future holds", name)
		}
		h.done(change(tenant, day)) // a clock may be wrong by so much
		if want := name == "suspendedAt"; h.shown(tenant) != want {
			t.Errorf("%s, a day ahead: %v", name, !want)
		}
	}
	early := suspension(newTenant(), now.Add(48*time.Hour))
	if got := h.deliver(early); got.Outcome != "parked" {
		t.Errorf("%+v", got)
	}
	now = now.Add(24 * time.Hour)
	h.done(early) // published again, when it is time
}

func TestTimesAreReadAsTheStandardHasThem(t *testing.T) {
	h := newHouse(t)
	for said, want := range map[string]string{
		"2020-11-20t12:00:00z":          "2020-11-20T12:00:00Z",
		"2020-11-20t12:00:00.25+04:30":  "2020-11-20T07:30:00.25Z",
		"2016-12-31T23:59:60Z":          "2016-12-31T23:59:59.999999Z",
		"2017-01-01t04:29:60.123+04:30": "2016-12-31T23:59:59.999999Z",
	} {
		tenant := newTenant()
		h.done(tell("tenant-suspended", fmt.Sprintf(`{"tenantId":%q,"reason":%q,"suspendedAt":%q}`, tenant, said, said)))
		at := read[time.Time](h, `SELECT suspended_at FROM bff_consumer.tenant_suspended_cache WHERE reason = $1`, said)
		if got := at.UTC().Format(time.RFC3339Nano); !h.shown(tenant) || got != want {
			t.Errorf("%s is read as %s, not %s", said, got, want)
		}
		h.done(tell("tenant-reinstated", fmt.Sprintf(`{"tenantId":%q,"reinstatedAt":%q}`, tenant, "2020-11-20t12:00:01z")))
		if h.shown(tenant) {
			t.Errorf("%s, reinstated: still suspended", said)
		}
	}
}
