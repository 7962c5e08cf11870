package wishlist

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

func TestStore_MutationUsesOneRoundTrip(t *testing.T) {
	d := newHarness(t)
	db, trips := pgtest.NewCounting(t)
	d.Store.db = db
	for n := range 3 {
		trips.TakeCount()
		if _, err := d.Add(t.Context(), d.session, newAddRequest(n), d.addedEvent(newAddRequest(n))); err != nil {
			t.Fatal(err)
		}
		added := trips.TakeCount()
		if _, err := d.Remove(t.Context(), d.session, newAddRequest(n).PropertyID, d.removedEvent(newAddRequest(n).PropertyID)); err != nil {
			t.Fatal(err)
		}
		// The first use on a connection prepares the statements.
		if removed := trips.TakeCount(); n > 0 && (added != 1 || removed != 1) {
			t.Errorf("add %d, remove %d round trips", added, removed)
		}
	}
}
