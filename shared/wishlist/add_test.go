package wishlist

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

func TestStoreAdd_AddsOnceAndRecordsOneEvent(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	w := newAddRequest(1)
	w.Note = "کنار دریا, 2nd floor"
	first := h.add(w)
	requireChange(t, first, true, 1)
	want := Item{
		ID: first.Item.ID, PropertyID: w.PropertyID, TenantID: w.TenantID, AddedAt: "2026-04-23T12:00:00.000Z", Source: w.Source, Note: w.Note,
	}
	if diff := cmp.Diff(want, first.Item); diff != "" {
		t.Errorf("item (-want +got):\n%s", diff)
	}
	h.time = noon.Add(time.Hour)
	other := newAddRequest(1)
	other.Source, other.Note, other.TenantID = "map", "another", newAddRequest(2).TenantID
	again := h.add(other)
	requireChange(t, again, false, 1)
	if diff := cmp.Diff(first.Item, again.Item); diff != "" {
		t.Errorf("item after the second addition (-first +second):\n%s", diff)
	}
	requireChange(t, h.add(newAddRequest(2)), true, 2)
	h.requireConsistent()

	events := h.events()
	if len(events) != 2 {
		t.Fatalf("%d events, want 2", len(events))
	}
	added, second := events[0].Payload.(event.WishlistAdded), events[1].Payload.(event.WishlistAdded)
	if added.WishlistID != first.Item.ID || added.WishlistSize != 1 || !added.AddedAt.Equal(noon) {
		t.Errorf("first event %+v, want id %s, size 1, time %s", added, first.Item.ID, noon)
	}
	if second.WishlistSize != 2 {
		t.Errorf("second event has size %d, want 2", second.WishlistSize)
	}
}

func TestStoreAdd_RevivesRemovedItem(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	first := h.add(newAddRequest(1))
	h.add(newAddRequest(2))
	h.remove(1)
	back := newAddRequest(1)
	back.Source, back.Note = "list", "again"
	again := h.add(back)
	requireChange(t, again, true, 2)
	if got, want := [3]string{again.Item.ID, again.Item.Note, again.Item.Source}, [3]string{first.Item.ID, "again", "list"}; got != want {
		t.Errorf("id, note, source: %q, want %q", got, want)
	}
	if diff := cmp.Diff(propertyIDs(2, 1), properties(h.requireConsistent().Items)); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
}

func TestStoreAdd_TimesAscendDespiteClockSkew(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for n := range 5 {
		h.time = noon.Add(-time.Duration(n) * time.Minute)
		h.add(newAddRequest(n))
	}
	h.remove(4)
	list := h.requireConsistent()
	for i := 1; i < len(list.Items); i++ {
		if earlier, later := list.Items[i-1].AddedAt, list.Items[i].AddedAt; later <= earlier {
			t.Errorf("item %d was added at %s, want later than %s", i, later, earlier)
		}
	}
	if diff := cmp.Diff(propertyIDs(3, 2, 1, 0), properties(list.NewestFirst())); diff != "" {
		t.Errorf("properties, newest first (-want +got):\n%s", diff)
	}
}

// Serial: each of 200 transactions waits for the lock of the session, within 1.5 s.
func TestStoreAdd_200ConcurrentAddsRespectLimit(t *testing.T) {
	h := newHarness(t)
	var mu sync.Mutex
	var existing, full int
	var sizes []int // after each addition
	var all sync.WaitGroup
	for n := range 200 { // 150 properties, 50 of them twice
		all.Go(func() {
			w := newAddRequest(n % 150)
			c, err := h.Add(context.Background(), h.session, w, h.addedEvent(w))
			mu.Lock()
			switch {
			case errors.Is(err, ErrFull):
				full++
			case err != nil:
				t.Error(err)
			case c.Applied:
				sizes = append(sizes, c.Size)
			default:
				existing++
			}
			mu.Unlock()
			if err == nil {
				h.writeCopy(c)
			}
		})
	}
	all.Wait()
	slices.Sort(sizes)
	var want []int
	for n := range MaxItems {
		want = append(want, n+1)
	}
	if diff := cmp.Diff(want, sizes); diff != "" || len(sizes)+existing+full != 200 {
		t.Errorf("%d added, %d existing, %d rejected of 200; sizes (-want +got):\n%s", len(sizes), existing, full, diff)
	}
	list := h.requireConsistent()
	if got := len(h.events()); len(list.Items) != MaxItems || got != MaxItems {
		t.Fatalf("%d items and %d events, want %d of each", len(list.Items), got, MaxItems)
	}
	one := list.Items[0]
	again := h.add(AddRequest{PropertyID: one.PropertyID, TenantID: one.TenantID, Source: "list"})
	requireChange(t, again, false, MaxItems)
	if diff := cmp.Diff(one, again.Item); diff != "" {
		t.Errorf("existing item of a full list (-want +got):\n%s", diff)
	}
}

// Serial, like the test above.
func TestStore_ConcurrentMutationsKeepStoresConsistent(t *testing.T) {
	h := newHarness(t)
	var all sync.WaitGroup
	for n := range 120 {
		all.Go(func() {
			w := newAddRequest(n % 12)
			c, err := h.Add(context.Background(), h.session, w, h.addedEvent(w))
			if n%3 == 0 {
				c, err = h.Remove(context.Background(), h.session, w.PropertyID, h.removedEvent(w.PropertyID))
			}
			if err != nil {
				t.Error(err)
				return
			}
			h.writeCopy(c)
		})
	}
	all.Wait()
	list := h.requireConsistent()
	size := 0
	for _, e := range h.events() {
		switch p := e.Payload.(type) {
		case event.WishlistAdded:
			size++
		case event.WishlistRemoved:
			size--
			if p.WishlistSize < 0 {
				t.Errorf("event with size %d, want at least 0", p.WishlistSize)
			}
		}
	}
	if size != len(list.Items) {
		t.Errorf("the events add up to %d items, want %d", size, len(list.Items))
	}
}

func TestStoreAdd_FullListAcceptsItemAfterRemoval(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for n := range MaxItems {
		h.add(newAddRequest(n))
	}
	next := newAddRequest(MaxItems)
	if _, err := h.Add(t.Context(), h.session, next, h.addedEvent(next)); !errors.Is(err, ErrFull) {
		t.Errorf("error %v, want ErrFull", err)
	}
	requireChange(t, h.add(newAddRequest(5)), false, MaxItems)
	h.remove(7)
	requireChange(t, h.add(next), true, MaxItems)
	h.requireConsistent()
}

func TestStoreAdd_RowAndEventAreOneTransaction(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	malformed := h.addedEvent(newAddRequest(1))
	malformed.ID = "evt_not-an-id" // the outbox rejects the event
	if _, err := h.Add(t.Context(), h.session, newAddRequest(1), malformed); err == nil {
		t.Fatal("the addition succeeded, want the error of the outbox")
	}
	if list := h.record(); len(list.Items) != 0 {
		t.Errorf("items %+v, want none", list.Items)
	}
}

func TestStore_SessionsAreIsolated(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.add(newAddRequest(1))
	first := h.session
	h.session = id.New(id.Session, noon)
	h.createSession()
	requireChange(t, h.add(newAddRequest(1)), true, 1)
	h.remove(1)
	h.deleteAll()
	h.session = first
	if diff := cmp.Diff(propertyIDs(1), properties(h.requireConsistent().Items)); diff != "" {
		t.Errorf("properties of the first session (-want +got):\n%s", diff)
	}
}

func TestStore_RejectsMalformedIDs(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	valid := newAddRequest(1)
	for name, w := range map[string]AddRequest{
		"property of an addition": {PropertyID: "ppt_x", TenantID: valid.TenantID},
		"tenant of an addition":   {PropertyID: valid.PropertyID, TenantID: "TNT" + valid.TenantID[3:]},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := h.Add(t.Context(), h.session, w); !errors.Is(err, id.ErrMalformed) {
				t.Errorf("error %v, want ErrMalformed", err)
			}
		})
	}
	t.Run("property of a removal", func(t *testing.T) {
		if _, err := h.Remove(t.Context(), h.session, "nothing"); !errors.Is(err, id.ErrMalformed) {
			t.Errorf("error %v, want ErrMalformed", err)
		}
	})
}
