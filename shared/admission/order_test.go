package admission_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/admission"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

var began, changed = event.SessionStarted{}.Subject(), event.LocaleChanged{}.Subject()

// told are the topics of a session in the order in which a relay sends them, by id.
func (h *house) told(session string) []string {
	h.T.Helper()
	rows, _ := h.DB.Query(h.T.Context(), `
		SELECT topic FROM bff_consumer.outbox WHERE headers ->> 'orderingKey' = $1 ORDER BY id`, session)
	topics, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		h.T.Fatal(err)
	}
	return topics
}

func change(g *admission.Guest) event.LocaleChanged {
	return event.LocaleChanged{
		GuestSessionID: g.ID, PreviousLocale: "en", NewLocale: "fr", Trigger: "user-selected", OccurredAt: g.LastSeenAt,
	}
}

func TestWhatARequestTellsIsInItsOrderWhateverOthersMintMeanwhile(t *testing.T) {
	h := newHouse(t, `{"botMode":"off","limitsEnabled":false}`)
	var guest string
	h.Mount("GET /changes", func(w http.ResponseWriter, r *http.Request) error {
		ctx, g, err := h.Parts.Door.Admit(w, r, nil)
		if err != nil {
			return err
		}
		for range 3 {
			id.New(id.Request, g.LastSeenAt.Add(time.Second)) // another request of this process begins
			g.Record(ctx, change(g), 1)
		}
		h.Parts.Door.Leave(ctx, w, g, nil, nil)
		guest = g.ID
		return nil
	})
	for range 8 { // by chance each is in order once in 24 times
		h.as(functest.Firefox, "/changes", "")
		if topics := h.told(guest); !slices.Equal(topics, []string{began, changed, changed, changed}) {
			t.Errorf("told in the order %v", topics)
		}
	}
}

func TestThatASessionBeganIsTakenBeforeWhatIsDoneInItIsTrue(t *testing.T) {
	h := newHouse(t, `{"botMode":"off","limitsEnabled":false}`)
	var before, after []string
	h.Mount("GET /does", func(w http.ResponseWriter, r *http.Request) error {
		ctx, g, err := h.Parts.Door.Admit(w, r, nil)
		if err != nil {
			return err
		}
		var batch pgx.Batch
		if err := g.Tell(ctx, &batch, change(g)); err != nil {
			return err
		}
		before = h.told(g.ID)
		if err := h.DB.SendBatch(ctx, &batch).Close(); err != nil {
			return err
		}
		h.Parts.Door.Leave(ctx, w, g, nil, nil)
		after = h.told(g.ID)
		return nil
	})
	a := h.as(functest.Firefox, "/does", "")
	if a.StatusCode != http.StatusOK || !slices.Equal(before, []string{began}) || !slices.Equal(after, []string{began, changed}) {
		t.Errorf("%d %s: before the transaction %v, after it %v", a.StatusCode, a.Text, before, after)
	}
}
