package wishlist

import (
	"testing"

	"github.com/redis/go-redis/v9"
)

// repair queues EnqueueRepair with the copy in Redis.
func (h *harness) repair(pipe redis.Pipeliner) {
	h.EnqueueRepair(h.t.Context(), pipe, h.session, h.record(), h.copyEntries(), true)
}

// addWithoutCopy adds property n, as a request that dies before its write to Redis.
func (h *harness) addWithoutCopy(n int) {
	h.t.Helper()
	if _, err := h.Add(h.t.Context(), h.session, newAddRequest(n)); err != nil {
		h.t.Fatal(err)
	}
}

func TestStoreRebuildCopy_RestoresLostOrStaleCopy(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.add(newAddRequest(1))
	h.rdb.FlushAll(t.Context())
	h.rdb.ScriptFlush(t.Context())
	h.createSession()
	h.add(newAddRequest(2))
	h.requireConsistent()
	h.addWithoutCopy(3)
	h.add(newAddRequest(4))
	h.requireConsistent()
}

func TestStoreEnqueueRepair_ReplacesStaleCopyAlone(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.add(newAddRequest(1))
	h.addWithoutCopy(2)
	h.exec(h.repair)
	h.requireConsistent()
	h.rdb.ScriptFlush(t.Context())
	h.add(newAddRequest(3))
	h.remove(3)
	h.requireConsistent()
	pipe := h.rdb.Pipeline()
	h.repair(pipe)
	if got := pipe.Len(); got != 0 {
		t.Errorf("%d commands for a correct copy, want 0", got)
	}
}

func TestStoreEnqueueRepair_KeepsNewerCopy(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.add(newAddRequest(1))
	old := h.record()
	h.add(newAddRequest(2))
	h.exec(func(pipe redis.Pipeliner) { h.EnqueueRepair(t.Context(), pipe, h.session, old, nil, false) })
	h.requireConsistent()
}
