package wishlist

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

func TestStore_MutationUsesOneRoundTrip(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	db, trips := pgtest.NewCounting(t)
	h.Store.db = db
	for n := range 3 {
		w := newAddRequest(n)
		trips.TakeCount()
		if _, err := h.Add(t.Context(), h.session, w, h.addedEvent(w)); err != nil {
			t.Fatal(err)
		}
		added := trips.TakeCount()
		if _, err := h.Remove(t.Context(), h.session, w.PropertyID, h.removedEvent(w.PropertyID)); err != nil {
			t.Fatal(err)
		}
		removed := trips.TakeCount()
		if n > 0 && (added != 1 || removed != 1) { // the first use of a connection prepares the statements
			t.Errorf("Add took %d round trips, Remove %d; want 1 each", added, removed)
		}
	}
}
