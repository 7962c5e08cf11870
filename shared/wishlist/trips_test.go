package wishlist

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
)

func TestAMutationIsOneRoundTrip(t *testing.T) {
	d := newDesk(t)
	db, trips := pgtest.Counted(t)
	d.Room.db = db
	for n := range 3 {
		trips.Take()
		if _, err := d.Add(t.Context(), d.session, wish(n), d.added(wish(n))); err != nil {
			t.Fatal(err)
		}
		added := trips.Take()
		if _, err := d.Remove(t.Context(), d.session, wish(n).PropertyID, d.removed(wish(n).PropertyID)); err != nil {
			t.Fatal(err)
		}
		// The first use on a connection prepares the statements.
		if removed := trips.Take(); n > 0 && (added != 1 || removed != 1) {
			t.Errorf("add %d, remove %d round trips", added, removed)
		}
	}
}
