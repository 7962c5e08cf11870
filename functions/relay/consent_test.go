package relay

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

func TestRelayConsent_DropsRowsOfOptedOutAndClearedSessions(t *testing.T) {
	h := newHarness(t)
	refused, cleared, agreed := newSession(), newSession(), newSession()
	h.addEvents(newEvents(refused, "lce")...)
	end := h.addEvents(newEvents(cleared, "lclclclclclclclclclclclce")...)
	all := h.addEvents(newEvents(agreed, "lc")...)
	h.setConsent(refused, false, false)
	h.setConsent(cleared, true, true)
	h.setConsent(agreed, true, false)
	report := h.runOnce(h.newRelay())
	if report.Published != 3 || report.Dropped != 3+int64(len(end)-1) || report.Depth != 0 {
		t.Errorf("%+v", report)
	}
	h.expectReceived(refused, nil)
	h.expectReceived(cleared, end[len(end)-1:])
	h.expectReceived(agreed, all)
	if n := queryValue[int](h, `SELECT count(*) FROM bff_consumer.outbox`); n != 3 {
		t.Errorf("%d rows are left", n)
	}
}

// A guest refuses while rows of theirs are under way. What the broker has by then it has; no request begins after it.
func TestRelayConsent_OptOutStopsRequestsNotYetStarted(t *testing.T) {
	before := consentMaxAge
	consentMaxAge = 0
	t.Cleanup(func() { consentMaxAge = before })
	h := newHarness(t)
	mine, cleared, other := newSession(), newSession(), newSession()
	other = other[:29] + mine[29:]
	cleared = cleared[:29] + mine[29:] // one lane, so one batch
	ids := h.addEvents(newEvents(mine, "lclclc")...)
	ends := h.addEvents(newEvents(cleared, "lcle")...)
	others := h.addEvents(newEvents(other, "lclclc")...)
	gate := make(chan struct{})
	h.broker.SetBehavior(func(pubsubtest.Request) pubsubtest.Behavior { return pubsubtest.Behavior{Gate: gate} })
	r := h.newRelay()
	done := make(chan Report)
	go func() {
		report, err := r.Run(t.Context(), Options{Once: true})
		if err != nil {
			t.Error(err)
		}
		done <- report
	}()
	for h.broker.Requests() < 3 {
		h.exec(`SELECT 1`)
	}
	h.setConsent(mine, false, false) // waits for nobody
	h.setConsent(cleared, true, true)
	h.clearSession(cleared)
	close(gate)
	report := <-done
	h.expectReceived(mine, ids[:1])
	h.expectReceived(cleared, []string{ends[0], ends[3]})
	h.expectReceived(other, others)
	if report.Depth != 0 || report.Parked != 0 {
		t.Errorf("%+v", report)
	}
}

// clearSession does what POST /session/clear does to the outbox.
func (h *harness) clearSession(session string) {
	var b pgx.Batch
	outbox.DeleteUnsent(&b, session)
	if err := h.db.SendBatch(h.Context(), &b).Close(); err != nil {
		h.Fatal(err)
	}
}

func TestRelayRun_ToleratesRowDeletedWhilePublishing(t *testing.T) {
	h := newHarness(t)
	session := newSession()
	ids := h.addEvents(newEvents(session, "ll")...)
	h.broker.SetBehavior(func(pubsubtest.Request) pubsubtest.Behavior {
		h.clearSession(session)
		return pubsubtest.Behavior{}
	})
	if report := h.runOnce(h.newRelay()); report.Failures != 0 || report.Depth != 0 {
		t.Errorf("%+v", report)
	}
	h.expectReceived(session, ids)
}
