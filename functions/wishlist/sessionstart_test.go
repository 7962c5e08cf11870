package wishlist

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

// The relay may publish wishlist.added as soon as its transaction is committed, so session.started
// must be committed with it.
func TestWishlistAdd_StartsSessionInSameTransaction(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.MustDo(201, "POST", "/wishlist", "", addBody(0))
	rows, _ := h.Deps.DB.Query(t.Context(), "SELECT topic, xmin::text FROM bff_consumer.outbox ORDER BY id")
	var topics, transactions []string
	var topic, transaction string
	_, err := pgx.ForEachRow(rows, []any{&topic, &transaction}, func() error {
		topics, transactions = append(topics, topic), append(transactions, transaction)
		return nil
	})
	want := []string{event.SessionStarted{}.Subject(), event.WishlistAdded{}.Subject()}
	if err != nil || !slices.Equal(topics, want) || len(slices.Compact(transactions)) != 1 {
		t.Errorf("got %v in transactions %v, error %v; want %v in one", topics, transactions, err, want)
	}
}
