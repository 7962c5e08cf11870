package telemetry

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/session"
)

func TestAReportOfAClearedSessionIsNotAcceptedAndFinishesTheClear(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	h.send(1, "click", cookie, clicked(1))
	if err := h.Parts.Burial.Bury(t.Context(), &session.Session{ID: cookie}); err != nil { // and dies before it comes to Redis
		t.Fatal(err)
	}
	if again := h.send(0, "click", cookie, clicked(2)); again != "" {
		t.Errorf("named %q", again)
	}
	if n := h.Count("outbox WHERE headers ->> 'orderingKey' = $1", cookie) + len(h.recent(cookie)); n != 0 {
		t.Errorf("%d things are left", n)
	}
	if again := h.send(1, "click", cookie, clicked(3)); again == "" || again == cookie {
		t.Errorf("goes on as %q", again)
	}
}

func TestWhatTheClientRepeatsIsNotTakenForACleared(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	for range 2 {
		if again := h.send(1, "click", cookie, clicked(1, `,"eventId":"event-0001"`)); again != cookie {
			t.Errorf("the guest is %q now", again)
		}
	}
}
