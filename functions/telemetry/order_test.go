package telemetry

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

// A relay sends what a session has to tell by id.
func TestTelemetry_EventsFollowSessionStarted(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]func(*harness) string{
		"without a time":           func(*harness) string { return "" },
		"at the very moment":       func(h *harness) string { return h.Now().Format(time.RFC3339Nano) },
		"before there was a guest": func(h *harness) string { return h.Now().Add(-time.Second).Format(time.RFC3339Nano) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			var events []string
			for n := range 20 { // one of them alone is before the beginning half of the time
				said := fmt.Sprintf(`,"eventId":"event-%04d"`, n)
				if at := when(h); at != "" {
					said += `,"occurredAt":"` + at + `"`
				}
				events = append(events, clickBody(n, said))
			}
			h.mustSend(20, "click", "", batchBody(events...))
			rows, _ := h.Deps.DB.Query(t.Context(), "SELECT topic FROM bff_consumer.outbox ORDER BY id")
			topics, err := pgx.CollectRows(rows, pgx.RowTo[string])
			if err != nil || len(topics) != 21 {
				t.Fatalf("%d events, %v", len(topics), err)
			}
			if want := (event.SessionStarted{}).Subject(); topics[0] != want {
				t.Errorf("%s is told first", topics[0])
			}
		})
	}
}

func TestTelemetry_EventsWithoutIDKeepRequestOrder(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.Advance(time.Minute) // so that the clock goes back between the one and the others
	var events, want []string
	for n := range 20 {
		events, want = append(events, clickBody(n)), append(want, propertyID(n))
	}
	h.mustSend(20, "click", "", batchBody(events...))
	rows, _ := h.Deps.DB.Query(t.Context(), `
		SELECT coalesce(payload -> 'payload' ->> 'propertyId', topic) FROM bff_consumer.outbox ORDER BY id`)
	told, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if want = append([]string{event.SessionStarted{}.Subject()}, want...); err != nil || !slices.Equal(told, want) {
		t.Errorf("%v: told %v", err, told)
	}
}
