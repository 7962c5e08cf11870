package telemetry

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/session"
)

func TestTelemetry_ErasedSessionIsRejectedAndErasureCompleted(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	h.mustSend(1, "click", cookie, clickBody(1))
	// Finish never runs
	if err := h.Deps.Eraser.Begin(t.Context(), &session.Session{ID: cookie}); err != nil {
		t.Fatal(err)
	}
	if again := h.mustSend(0, "click", cookie, clickBody(2)); again != "" {
		t.Errorf("got cookie %q; want none", again)
	}
	if n := h.Count("outbox WHERE headers ->> 'orderingKey' = $1", cookie) + len(h.recentlyViewed(cookie)); n != 0 {
		t.Errorf("got %d events and viewed properties; want 0", n)
	}
	if again := h.mustSend(1, "click", cookie, clickBody(3)); again == "" || again == cookie {
		t.Errorf("got cookie %q; want another session than %q", again, cookie)
	}
}

func TestTelemetry_RepeatedEventIsNotErasure(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	for range 2 {
		if again := h.mustSend(1, "click", cookie, clickBody(1, `,"eventId":"event-0001"`)); again != cookie {
			t.Errorf("got cookie %q; want %q", again, cookie)
		}
	}
}
