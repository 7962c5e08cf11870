package telemetry

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

// The relay publishes the events of a session in order of id.
func TestTelemetry_EventsFollowSessionStarted(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]func(*harness) string{
		"without a time":         func(*harness) string { return "" },
		"at the session's start": func(h *harness) string { return h.Now().Format(time.RFC3339Nano) },
		"before the session":     func(h *harness) string { return h.Now().Add(-time.Second).Format(time.RFC3339Nano) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			var events []string
			for n := range 20 { // a single random id would sort before session.started half of the time
				members := fmt.Sprintf(`,"eventId":"event-%04d"`, n)
				if at := when(h); at != "" {
					members += `,"occurredAt":"` + at + `"`
				}
				events = append(events, clickBody(n, members))
			}
			h.mustSend(20, "click", "", batchBody(events...))
			rows, _ := h.Deps.DB.Query(t.Context(), "SELECT topic FROM bff_consumer.outbox ORDER BY id")
			topics, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil || len(topics) != 21 {
				t.Fatalf("got %d events, error %v; want 21", len(topics), err)
			}
			if want := (event.SessionStarted{}).Subject(); topics[0] != want {
				t.Errorf("first event: got %s; want %s", topics[0], want)
			}
		})
	}
}

func TestTelemetry_EventsWithoutIDKeepRequestOrder(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.Advance(time.Minute) // so that the ids made from the real clock have earlier times
	var events, want []string
	for n := range 20 {
		events, want = append(events, clickBody(n)), append(want, propertyID(n))
	}
	h.mustSend(20, "click", "", batchBody(events...))
	rows, _ := h.Deps.DB.Query(t.Context(), `
		SELECT coalesce(payload -> 'payload' ->> 'propertyId', topic) FROM bff_consumer.outbox ORDER BY id`)
	got, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if want = append([]string{event.SessionStarted{}.Subject()}, want...); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, error %v; want %v", got, err, want)
	}
}
