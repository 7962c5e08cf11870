package wishlist

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/session"
)

func TestStore_RejectsClearedSession(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.add(newAddRequest(1))
	events := len(h.events())
	h.setConsent(true, "now()")
	_, addErr := h.Add(t.Context(), h.session, newAddRequest(2), h.addedEvent(newAddRequest(2)))
	property := newAddRequest(1).PropertyID
	_, removeErr := h.Remove(t.Context(), h.session, property, h.removedEvent(property))
	_, getErr := h.GetWithoutCopy(t.Context(), h.session)
	for call, err := range map[string]error{"Add": addErr, "Remove": removeErr, "Get": getErr} {
		if !errors.Is(err, session.ErrCleared) {
			t.Errorf("%s: error %v, want ErrCleared", call, err)
		}
	}
	if got := len(h.events()); got != events {
		t.Errorf("%d events, want %d", got, events)
	}
	h.rdb.Del(t.Context(), h.keys.Session(h.session), h.listKey(h.session))
	h.exec(func(pipe redis.Pipeliner) { // by a request that read the list before
		h.EnqueueRepair(t.Context(), pipe, h.session, List{}, nil, false)
	})
	if keys := h.rdb.Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("keys in Redis: %q, want none", keys)
	}
}

func TestStore_OptOutSuppressesOnlyEvents(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.setConsent(false, "NULL")
	h.add(newAddRequest(1))
	h.remove(1)
	h.add(newAddRequest(2))
	if diff := cmp.Diff(propertyIDs(2), properties(h.requireConsistent().Items)); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
	if got := len(h.events()); got != 0 {
		t.Errorf("%d events, want 0", got)
	}
}
