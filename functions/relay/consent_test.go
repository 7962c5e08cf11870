package relay

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

func TestNothingIsToldOfWhoRefusedOrCleared(t *testing.T) {
	h := newHouse(t)
	refused, cleared, agreed := newSession(), newSession(), newSession()
	h.add(events(refused, "lce")...)
	end := h.add(events(cleared, "lclclclclclclclclclclclce")...)
	all := h.add(events(agreed, "lc")...)
	h.choose(refused, false, false)
	h.choose(cleared, true, true)
	h.choose(agreed, true, false)
	report := h.once(h.relay())
	if report.Published != 3 || report.Dropped != 3+int64(len(end)-1) || report.Depth != 0 {
		t.Errorf("%+v", report)
	}
	h.expect(refused, nil)
	h.expect(cleared, end[len(end)-1:])
	h.expect(agreed, all)
	if n := read[int](h, `SELECT count(*) FROM bff_consumer.outbox`); n != 3 {
		t.Errorf("%d rows are left", n)
	}
}

// A guest refuses while rows of theirs are under way. What the broker has by then it has; no request begins after it.
func TestARefusalStopsWhatHasNotBegun(t *testing.T) {
	before := askedLately
	askedLately = 0
	t.Cleanup(func() { askedLately = before })
	h := newHouse(t)
	mine, cleared, other := newSession(), newSession(), newSession()
	other = other[:29] + mine[29:]
	cleared = cleared[:29] + mine[29:] // one lane, so one batch
	ids := h.add(events(mine, "lclclc")...)
	ends := h.add(events(cleared, "lcle")...)
	others := h.add(events(other, "lclclc")...)
	gate := make(chan struct{})
	h.broker.React(func(pubsubtest.Request) pubsubtest.Reaction { return pubsubtest.Reaction{Gate: gate} })
	r := h.relay()
	done := make(chan Report)
	go func() {
		report, err := r.Run(t.Context(), Orders{Once: true})
		if err != nil {
			t.Error(err)
		}
		done <- report
	}()
	for h.broker.Requests() < 3 {
		h.exec(`SELECT 1`)
	}
	h.choose(mine, false, false) // waits for nobody
	h.choose(cleared, true, true)
	h.clear(cleared)
	close(gate)
	report := <-done
	h.expect(mine, ids[:1])
	h.expect(cleared, []string{ends[0], ends[3]})
	h.expect(other, others)
	if report.Depth != 0 || report.Parked != 0 {
		t.Errorf("%+v", report)
	}
}

// clear does what POST /session/clear does to the outbox.
func (h *house) clear(session string) {
	var b pgx.Batch
	outbox.Forget(&b, session)
	if err := h.db.SendBatch(h.Context(), &b).Close(); err != nil {
		h.Fatal(err)
	}
}

func TestARowDeletedUnderWayIsNoTrouble(t *testing.T) {
	h := newHouse(t)
	session := newSession()
	ids := h.add(events(session, "ll")...)
	h.broker.React(func(pubsubtest.Request) pubsubtest.Reaction {
		h.clear(session)
		return pubsubtest.Reaction{}
	})
	if report := h.once(h.relay()); report.Failures != 0 || report.Depth != 0 {
		t.Errorf("%+v", report)
	}
	h.expect(session, ids)
}
