package relay

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

// setConsentMaxAge changes consentMaxAge until the end of the test. The test must not run in
// parallel.
func setConsentMaxAge(t *testing.T, age time.Duration) {
	before := consentMaxAge
	consentMaxAge = age
	t.Cleanup(func() { consentMaxAge = before })
}

func TestRelayConsent_DropsRowsOfOptedOutAndClearedSessions(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	refused, cleared, agreed := newSession(), newSession(), newSession()
	h.addEvents(newEvents(refused, "lce")...)
	clearedIDs := h.addEvents(newEvents(cleared, "lclclclclclclclclclclclce")...)
	agreedIDs := h.addEvents(newEvents(agreed, "lc")...)
	h.setConsent(refused, false, false)
	h.setConsent(cleared, true, true)
	h.setConsent(agreed, true, false)
	report := h.runOnce(h.newRelay())
	if report.Published != 3 || report.Dropped != 3+int64(len(clearedIDs)-1) || report.Depth != 0 {
		t.Errorf("got %+v, want 3 published rows, %d dropped rows and no pending row", report, 3+len(clearedIDs)-1)
	}
	h.expectReceived(refused, nil)
	h.expectReceived(cleared, clearedIDs[len(clearedIDs)-1:])
	h.expectReceived(agreed, agreedIDs)
	if n := h.Count("outbox"); n != 3 {
		t.Errorf("got %d rows, want 3", n)
	}
}

// A guest refuses telemetry while rows of the session are on their way. A request under way may
// arrive; no request starts after the refusal.
func TestRelayConsent_OptOutStopsRequestsNotYetStarted(t *testing.T) {
	h := newHarness(t)
	setConsentMaxAge(t, 0)
	refused := newSession() // the other sessions are in the same shard, and so in the same batch
	cleared, other := newSessionInShard(refused), newSessionInShard(refused)
	refusedIDs := h.addEvents(newEvents(refused, "lclclc")...)
	clearedIDs := h.addEvents(newEvents(cleared, "lcle")...)
	otherIDs := h.addEvents(newEvents(other, "lclclc")...)
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
	h.awaitRequests(3)
	h.setConsent(refused, false, false) // waits for no lock
	h.setConsent(cleared, true, true)
	h.clearSession(cleared)
	close(gate)
	report := <-done
	h.expectReceived(refused, refusedIDs[:1])
	h.expectReceived(cleared, []string{clearedIDs[0], clearedIDs[3]})
	h.expectReceived(other, otherIDs)
	if report.Depth != 0 || report.Parked != 0 {
		t.Errorf("got %+v, want no pending and no parked row", report)
	}
}

// clearSession changes the outbox as POST /session/clear does.
func (h *harness) clearSession(session string) {
	h.T.Helper()
	var b pgx.Batch
	outbox.DeleteUnsent(&b, session)
	if err := h.DB.SendBatch(h.T.Context(), &b).Close(); err != nil {
		h.T.Fatal(err)
	}
}

func TestRelayRun_ToleratesRowDeletedWhilePublishing(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	session := newSession()
	ids := h.addEvents(newEvents(session, "ll")...)
	h.broker.SetBehavior(func(pubsubtest.Request) pubsubtest.Behavior {
		h.clearSession(session)
		return pubsubtest.Behavior{}
	})
	if report := h.runOnce(h.newRelay()); report.Failures != 0 || report.Depth != 0 {
		t.Errorf("got %+v, want no failure and no pending row", report)
	}
	h.expectReceived(session, ids)
}
