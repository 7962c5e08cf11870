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
		{"no event", nil, 0}, {"two events", fresh, 2}, {"repeated events", fresh, 0}, {"a repeated and a new event", append(newEvents(1), fresh[0]), 1},
		{"refused telemetry", refused, 0}, {"cleared session", cleared, 0},
	} {
		if taken, err := r.Record(t.Context(), true, c.events...); err != nil || taken != c.want {
			t.Errorf("%s: got %d, %v, want %d", c.name, taken, err, c.want)
		}
	}
	proxy.Break()
	if taken, err := r.Record(t.Context(), true, newEvents(2)...); err != nil || taken != 2 || len(bufferedIDs(t, rdb)) != 2 {
		t.Errorf("without Postgres: got %d, %v and %d buffered rows, want 2 and 2", taken, err, len(bufferedIDs(t, rdb)))
	}
}

func TestOutboxRecord_WithoutBufferingWritesNowOrFails(t *testing.T) {
	db, proxy, _ := newProxiedPool(t)
	rdb := redistest.New(t)
	r := NewRecorder(db, rdb, keys)
	if taken, err := r.Record(t.Context(), false, newEvents(1)...); err != nil || taken != 1 {
		t.Errorf("got %d, %v, want 1", taken, err)
	}
	proxy.Break()
	if taken, err := r.Record(t.Context(), false, newEvents(1)...); err == nil || taken != 0 {
		t.Errorf("without Postgres: got %d, %v, want an error", taken, err)
	}
	if n := len(bufferedIDs(t, rdb)); n != 0 {
		t.Errorf("got %d buffered rows, want none", n)
	}
}
