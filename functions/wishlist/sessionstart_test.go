package wishlist

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

// A relay may send the wish as soon as its transaction has ended.
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
		t.Errorf("%v: told %v in the transactions %v", err, topics, transactions)
	}
}
