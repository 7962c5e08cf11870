package guest_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

var subjectStarted, subjectLocaleChanged = event.SessionStarted{}.Subject(), event.LocaleChanged{}.Subject()

// eventTopics are the topics of a session in the order in which a relay sends them, by id.
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
	h := newHarness(t, `{"botMode":"off","limitsEnabled":false}`)
	var guest string
	h.Mount("GET /changes", func(w http.ResponseWriter, r *http.Request) error {
		ctx, g, err := h.Deps.Guests.Begin(w, r, nil)
		if err != nil {
			return err
		}
		for range 3 {
			id.New(id.Request, g.LastSeenAt.Add(time.Second)) // another request of this process begins
			g.Record(ctx, localeChange(g), 1)
		}
		h.Deps.Guests.Finish(ctx, w, g, nil, nil)
		guest = g.ID
		return nil
	})
	for range 8 { // by chance each is in order once in 24 times
		h.getAs(functest.Firefox, "/changes", "")
		if topics := h.eventTopics(guest); !slices.Equal(topics, []string{subjectStarted, subjectLocaleChanged, subjectLocaleChanged, subjectLocaleChanged}) {
			t.Errorf("told in the order %v", topics)
		}
	}
}

func TestGuestQueueEvents_SessionStartedCommitsWithFirstMutation(t *testing.T) {
	h := newHarness(t, `{"botMode":"off","limitsEnabled":false}`)
	var meanwhile []string
	var fails bool
	h.Mount("GET /does", func(w http.ResponseWriter, r *http.Request) error {
		ctx, g, err := h.Deps.Guests.Begin(w, r, nil)
		if err != nil {
			return err
		}
		var batch pgx.Batch
		if err := g.QueueEvents(ctx, &batch, localeChange(g)); err != nil {
			return err
		}
		if fails {
			meanwhile = h.eventTopics(g.ID)
			return errors.New("the transaction failed")
		}
		if err := h.DB.SendBatch(ctx, &batch).Close(); err != nil {
			return err
		}
		meanwhile = h.eventTopics(g.ID) // before the guest leaves
		h.Deps.Guests.Finish(ctx, w, g, nil, nil)
		if after := h.eventTopics(g.ID); !slices.Equal(after, meanwhile) {
			t.Errorf("told %v, and then %v", meanwhile, after)
		}
		return nil
	})
	if a := h.getAs(functest.Firefox, "/does", ""); a.StatusCode != http.StatusOK || !slices.Equal(meanwhile, []string{subjectStarted, subjectLocaleChanged}) {
		t.Errorf("%d %s: told with the transaction: %v", a.StatusCode, a.Text, meanwhile)
	}
	fails = true
	if a := h.getAs(functest.Firefox, "/does", ""); a.StatusCode != http.StatusInternalServerError || len(meanwhile) > 0 {
		t.Errorf("%d %s: told without the transaction: %v", a.StatusCode, a.Text, meanwhile)
	}
}
