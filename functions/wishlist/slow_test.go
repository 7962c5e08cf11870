package wishlist

import (
	"strings"
	"testing"
)

// TestAListWithoutACopyWaitsForItsRecord holds the record for half a second, after Redis lost the copy.
func TestAListWithoutACopyWaitsForItsRecord(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	if err := h.RDB.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	tx, err := h.DB.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "LOCK TABLE bff_consumer.wishlist_anonymous IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	released := make(chan error, 1)
	go func() {
		_, err := tx.Exec(t.Context(), "SELECT pg_sleep(0.5)")
		if err == nil {
			err = tx.Commit(t.Context())
		}
		released <- err
	}()
	if a := h.Must(200, "GET", "/wishlist", cookie, ""); !strings.Contains(a.Text, `"size":0`) || !strings.Contains(a.Text, `"degraded":[]`) {
		t.Errorf("%s", a.Text)
	}
	if err := <-released; err != nil {
		t.Error(err)
	}
}
