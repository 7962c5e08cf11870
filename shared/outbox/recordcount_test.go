package outbox

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

func TestOutboxRecord_ReturnsNumberOfAcceptedEvents(t *testing.T) {
	db, proxy, _ := newProxiedPool(t)
	rdb := redistest.New(t)
	r := NewRecorder(db, rdb, keys)
	fresh, refused, cleared := newEvents(2), newEvents(1), newEvents(1)
	setConsent(t, db, refused[0].SessionID, false, false)
	setConsent(t, db, cleared[0].SessionID, true, true)
	for _, c := range []struct {
		name   string
		events []event.Event
		want   int
	}{
		{"none", nil, 0}, {"two", fresh, 2}, {"the same again", fresh, 0}, {"one of them, one new", append(newEvents(1), fresh[0]), 1},
		{"of a guest who refused", refused, 0}, {"of a session that was cleared", cleared, 0},
	} {
		if taken, err := r.Record(t.Context(), true, c.events...); err != nil || taken != c.want {
			t.Errorf("%s: %d, %v", c.name, taken, err)
		}
	}
	proxy.Break()
	if taken, err := r.Record(t.Context(), true, newEvents(2)...); err != nil || taken != 2 || len(bufferedIDs(t, rdb)) != 2 {
		t.Errorf("Postgres away: %d, %v, %d wait", taken, err, len(bufferedIDs(t, rdb)))
	}
}

func TestOutboxRecord_WithoutBufferingWritesNowOrFails(t *testing.T) {
	db, proxy, _ := newProxiedPool(t)
	rdb := redistest.New(t)
	r := NewRecorder(db, rdb, keys)
	if taken, err := r.Record(t.Context(), false, newEvents(1)...); err != nil || taken != 1 {
		t.Errorf("%d, %v", taken, err)
	}
	proxy.Break()
	if taken, err := r.Record(t.Context(), false, newEvents(1)...); err == nil || taken != 0 {
		t.Errorf("Postgres away: %d, %v", taken, err)
	}
	if n := len(bufferedIDs(t, rdb)); n != 0 {
		t.Errorf("%d wait", n)
	}
}
