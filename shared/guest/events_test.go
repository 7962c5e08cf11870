package guest_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

var subjectStarted, subjectLocaleChanged = event.SessionStarted{}.Subject(), event.LocaleChanged{}.Subject()

// eventTopics returns the topics of a session in the order of ids, which is the order of a relay.
func (h *harness) eventTopics(session string) []string {
	h.T.Helper()
	rows, _ := h.DB.Query(h.T.Context(), `
		SELECT topic FROM bff_consumer.outbox WHERE headers ->> 'orderingKey' = $1 ORDER BY id`, session)
	topics, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		h.T.Fatal(err)
	}
	return topics
}

func localeChange(g *guest.Guest) event.LocaleChanged {
	return event.LocaleChanged{
		GuestSessionID: g.ID, PreviousLocale: "en", NewLocale: "fr", Trigger: "user-selected", OccurredAt: g.LastSeenAt,
	}
}

func TestGuestRecord_KeepsEventOrderWithinARequest(t *testing.T) {
	t.Parallel()
	h := newHarness(t, gateOff)
	var session string
	h.Mount("GET /changes", func(w http.ResponseWriter, r *http.Request) error {
		ctx, g, err := h.Deps.Guests.Begin(w, r, nil)
		if err != nil {
			return err
		}
		for range 3 {
			id.New(id.Request, g.LastSeenAt.Add(time.Second)) // as if another request of this process began
			g.Record(ctx, localeChange(g), 1)
		}
		h.Deps.Guests.Finish(ctx, w, g, nil, nil)
		session = g.ID
		return nil
	})
	want := []string{subjectStarted, subjectLocaleChanged, subjectLocaleChanged, subjectLocaleChanged}
	for range 8 { // random ids would be in order once in 24 times
		h.getAs(functest.Firefox, "/changes", "")
		if diff := cmp.Diff(want, h.eventTopics(session)); diff != "" {
			t.Errorf("topics (-want +got):\n%s", diff)
		}
	}
}

func TestGuestQueueEvents_SessionStartedCommitsWithFirstMutation(t *testing.T) {
	t.Parallel()
	h := newHarness(t, gateOff)
	var afterMutation []string
	fails := false
	h.Mount("GET /mutation", func(w http.ResponseWriter, r *http.Request) error {
		ctx, g, err := h.Deps.Guests.Begin(w, r, nil)
		if err != nil {
			return err
		}
		var batch pgx.Batch
		if err := g.QueueEvents(ctx, &batch, localeChange(g)); err != nil {
			return err
		}
		if fails {
			afterMutation = h.eventTopics(g.ID)
			return errors.New("the transaction failed")
		}
		if err := h.DB.SendBatch(ctx, &batch).Close(); err != nil {
			return err
		}
		afterMutation = h.eventTopics(g.ID)
		h.Deps.Guests.Finish(ctx, w, g, nil, nil)
		if diff := cmp.Diff(afterMutation, h.eventTopics(g.ID)); diff != "" {
			t.Errorf("Finish changed the topics (-before +after):\n%s", diff)
		}
		return nil
	})
	h.MustDo(http.StatusOK, "GET", "/mutation", "", "")
	if diff := cmp.Diff([]string{subjectStarted, subjectLocaleChanged}, afterMutation); diff != "" {
		t.Errorf("topics after the transaction (-want +got):\n%s", diff)
	}
	fails = true
	h.MustDo(http.StatusInternalServerError, "GET", "/mutation", "", "")
	if len(afterMutation) > 0 {
		t.Errorf("topics without the transaction: %q, want none", afterMutation)
	}
}
