package wishlist

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestAListWithoutACopyWaitsForItsRecord holds the record for half a second, after Redis lost the copy.
func TestAListWithoutACopyWaitsForItsRecord(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	if err := h.RDB.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	held, released := make(chan struct{}), make(chan error, 1)
	go func() {
		released <- pgx.BeginFunc(t.Context(), h.DB, func(tx pgx.Tx) error {
			defer close(held)
			_, err := tx.Exec(t.Context(), "LOCK TABLE bff_consumer.wishlist_anonymous IN ACCESS EXCLUSIVE MODE")
			if err == nil {
				held <- struct{}{}
				_, err = tx.Exec(t.Context(), "SELECT pg_sleep(0.5)")
			}
			return err
		})
	}()
	<-held
	a := h.Ask("GET", "/wishlist", cookie, "")
	if err := <-released; err != nil {
		t.Fatal(err)
	}
	if a.StatusCode != 200 || !strings.Contains(a.Text, `"size":0`) || !strings.Contains(a.Text, `"degraded":[]`) {
		t.Errorf("%d %s", a.StatusCode, a.Text)
	}
}
