package outbox

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
)

func TestAnOfferSaysHowManyWereTaken(t *testing.T) {
	db, proxy, _ := shaky(t)
	rdb := redistest.New(t)
	r := NewRecorder(db, rdb, keys)
	fresh, refused, cleared := changes(2), changes(1), changes(1)
	decide(t, db, refused[0].SessionID, false, false)
	decide(t, db, cleared[0].SessionID, true, true)
	for _, c := range []struct {
		name   string
		events []event.Event
		want   int
	}{
		{"none", nil, 0}, {"two", fresh, 2}, {"the same again", fresh, 0}, {"one of them, one new", append(changes(1), fresh[0]), 1},
		{"of a guest who refused", refused, 0}, {"of a session that was cleared", cleared, 0},
	} {
		if taken, err := r.Offer(t.Context(), true, c.events...); err != nil || taken != c.want {
			t.Errorf("%s: %d, %v", c.name, taken, err)
		}
	}
	proxy.Break()
	if taken, err := r.Offer(t.Context(), true, changes(2)...); err != nil || taken != 2 || len(waiting(t, rdb)) != 2 {
		t.Errorf("Postgres away: %d, %v, %d wait", taken, err, len(waiting(t, rdb)))
	}
}

func TestWhatMayNotWaitIsWrittenNowOrLost(t *testing.T) {
	db, proxy, _ := shaky(t)
	rdb := redistest.New(t)
	r := NewRecorder(db, rdb, keys)
	if taken, err := r.Offer(t.Context(), false, changes(1)...); err != nil || taken != 1 {
		t.Errorf("%d, %v", taken, err)
	}
	proxy.Break()
	if taken, err := r.Offer(t.Context(), false, changes(1)...); err == nil || taken != 0 {
		t.Errorf("Postgres away: %d, %v", taken, err)
	}
	if n := len(waiting(t, rdb)); n != 0 {
		t.Errorf("%d wait", n)
	}
}
