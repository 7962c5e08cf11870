package wishlist

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// waitForLockWaiter returns when a query has waited for a lock for half a second, which is longer
// than the 300 ms of a list with a copy.
func (h *harness) waitForLockWaiter(ctx context.Context) error {
	for waiting := false; !waiting; {
		err := h.DB.QueryRow(ctx, `
			SELECT EXISTS (
				SELECT
				FROM pg_stat_activity
				WHERE datname = current_database()
				  AND wait_event_type = 'Lock'
				  AND clock_timestamp() - query_start > interval '0.5 s')`).Scan(&waiting)
		if err != nil {
			return err
		}
	}
	return nil
}

// The test locks the table after Redis lost the copy, until the list has waited for the lock.
func TestWishlistList_WithoutCopyWaitsForPostgres(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	if err := h.RDB.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	waitCtx, cancelWait := context.WithCancel(t.Context())
	locked, released := make(chan struct{}), make(chan error, 1)
	go func() {
		released <- pgx.BeginFunc(t.Context(), h.DB, func(tx pgx.Tx) error {
			defer close(locked)
			_, err := tx.Exec(t.Context(), "LOCK TABLE bff_consumer.wishlist_anonymous IN ACCESS EXCLUSIVE MODE")
			if err == nil {
				locked <- struct{}{}
				err = h.waitForLockWaiter(waitCtx)
			}
			return err
		})
	}()
	<-locked
	a := h.Do("GET", "/wishlist", cookie, "")
	cancelWait()
	if err := <-released; err != nil {
		t.Errorf("the list did not wait: %v", err)
	}
	if a.StatusCode != 200 || !strings.Contains(a.Text, `"size":0`) || !strings.Contains(a.Text, `"degraded":[]`) {
		t.Errorf(`got %d %s; want status 200, an empty list without degraded parts`, a.StatusCode, a.Text)
	}
}
