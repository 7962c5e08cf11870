package wishlist

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// waitForLockWaiter returns once somebody has waited for a lock for half a second: for longer than a list that has a copy would.
func (h *harness) waitForLockWaiter(ctx context.Context) error {
	for somebody := false; !somebody; {
		err := h.DB.QueryRow(ctx, `
			SELECT EXISTS (
				SELECT
				FROM pg_stat_activity
				WHERE datname = current_database()
				  AND wait_event_type = 'Lock'
				  AND clock_timestamp() - query_start > interval '0.5 s')`).Scan(&somebody)
		if err != nil {
			return err
		}
	}
	return nil
}

// TestWishlistList_WithoutCopyWaitsForPostgres holds the record after Redis lost the copy.
func TestWishlistList_WithoutCopyWaitsForPostgres(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	if err := h.RDB.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	answered, answer := context.WithCancel(t.Context())
	held, released := make(chan struct{}), make(chan error, 1)
	go func() {
		released <- pgx.BeginFunc(t.Context(), h.DB, func(tx pgx.Tx) error {
			defer close(held)
			_, err := tx.Exec(t.Context(), "LOCK TABLE bff_consumer.wishlist_anonymous IN ACCESS EXCLUSIVE MODE")
			if err == nil {
				held <- struct{}{}
				err = h.waitForLockWaiter(answered)
			}
			return err
		})
	}()
	<-held
	a := h.Do("GET", "/wishlist", cookie, "")
	answer()
	if err := <-released; err != nil {
		t.Errorf("the list did not wait: %v", err)
	}
	if a.StatusCode != 200 || !strings.Contains(a.Text, `"size":0`) || !strings.Contains(a.Text, `"degraded":[]`) {
		t.Errorf(`got %d %s; want status 200, an empty list without degraded parts`, a.StatusCode, a.Text)
	}
}
