package wishlist

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

// deleteAll deletes the list of the session.
func (h *harness) deleteAll() {
	h.t.Helper()
	var batch pgx.Batch
	QueueDelete(&batch, h.session)
	if err := h.db.SendBatch(h.t.Context(), &batch).Close(); err != nil {
		h.t.Fatal(err)
	}
}

func TestStoreRemove_RemovesOnceAndRecordsOneEvent(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.add(newAddRequest(1))
	h.add(newAddRequest(2))
	requireChange(t, h.remove(1), true, 1)
	requireChange(t, h.remove(1), false, 1)
	requireChange(t, h.remove(9), false, 1) // never added
	list := h.requireConsistent()
	if diff := cmp.Diff(propertyIDs(2), properties(list.Items)); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
	if len(list.Removed) != 1 || list.Removed[0].ID != first.Item.ID {
		t.Errorf("removed items %+v, want %s alone", list.Removed, first.Item.ID)
	}
	events := h.events()
	if len(events) != 3 {
		t.Fatalf("%d events, want 2 additions and a removal", len(events))
	}
	removed := events[2].Payload.(event.WishlistRemoved)
	if removed.WishlistID != first.Item.ID || removed.TenantID != newAddRequest(1).TenantID || removed.WishlistSize != 1 {
		t.Errorf("event %+v, want id %s, tenant %s, size 1", removed, first.Item.ID, newAddRequest(1).TenantID)
	}
}

func TestStoreRemove_EventHasFullTenantID(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for n, tenant := range []string{
		"tnt_7ZZZZZZZZZZZZZZZZZZZZZZZZZ", "tnt_00000000000000000000000000", "tnt_01KPWGB8XKFVZN6H3S0T5QYJ4F", "tnt_5A5A5A5A5A5A5A5A5A5A5A5A5A",
	} {
		t.Run(tenant, func(t *testing.T) {
			w := newAddRequest(n)
			w.TenantID = tenant
			h.add(w)
			h.remove(n)
			events := h.events()
			if got := events[len(events)-1].Payload.(event.WishlistRemoved).TenantID; got != tenant {
				t.Errorf("the event has tenant %s, want %s", got, tenant)
			}
		})
	}
}

func TestStoreRemove_TrimsRemovedRows(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for n := range maxRemoved + 20 {
		h.add(newAddRequest(n))
		h.remove(n)
	}
	if got := len(h.record().Removed); got < maxRemoved || got > maxRemoved+1 {
		t.Errorf("%d removed rows, want %d or one more", got, maxRemoved)
	}
	h.add(newAddRequest(1))
	h.requireConsistent()
}
