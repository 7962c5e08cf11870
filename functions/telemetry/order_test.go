package telemetry

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

// A relay sends what a session has to tell by id.
func TestNothingIsToldBeforeTheSessionBegan(t *testing.T) {
	for name, when := range map[string]func(*house) string{
		"without a time":           func(*house) string { return "" },
		"at the very moment":       func(h *house) string { return h.Now().Format(time.RFC3339Nano) },
		"before there was a guest": func(h *house) string { return h.Now().Add(-time.Second).Format(time.RFC3339Nano) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			var events []string
			for n := range 20 { // one of them alone is before the beginning half of the time
				said := fmt.Sprintf(`,"eventId":"event-%04d"`, n)
				if at := when(h); at != "" {
					said += `,"occurredAt":"` + at + `"`
				}
				events = append(events, clicked(n, said))
			}
			h.send(20, "click", "", batch(events...))
			rows, _ := h.Parts.DB.Query(t.Context(), "SELECT topic FROM bff_consumer.outbox ORDER BY id")
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

// What has no name of its client's is told in the order of the request, at the request's time: also when a clock was put back meanwhile.
func TestWhatHasNoNameIsToldAfterTheSessionBegan(t *testing.T) {
	h := newHouse(t)
	h.Set(time.Now().Add(time.Second))
	h.send(2, "click", "", batch(clicked(1, ""), clicked(2, "")))
	rows, _ := h.Parts.DB.Query(t.Context(), "SELECT topic FROM bff_consumer.outbox ORDER BY id")
	topics, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(topics) != 3 || topics[0] != (event.SessionStarted{}).Subject() {
		t.Errorf("told are %v, %v", topics, err)
	}
}
