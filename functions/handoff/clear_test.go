package handoff

import (
	"context"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
)

// bury is the first half of a clear.
func (h *house) bury(id string) {
	h.T.Helper()
	if err := h.Parts.Burial.Bury(context.Background(), &session.Session{ID: id}); err != nil {
		h.T.Error(err)
	}
}

// clear is all of it.
func (h *house) clear(id string) {
	h.T.Helper()
	h.bury(id)
	if err := h.Parts.Burial.Finish(context.Background(), id); err != nil {
		h.T.Error(err)
	}
}

// left is what the stores have of a session, or under any idempotency key, but for the ledger and the mark of a clear.
func (h *house) left(id string) (found []string) {
	h.T.Helper()
	for _, key := range h.Parts.Redis.Keys(context.Background(), "*").Val() {
		if strings.Contains(key, ":idem:") || strings.Contains(key, id) && !strings.HasSuffix(key, ":cleared") {
			found = append(found, key)
		}
	}
	for _, table := range []string{"idempotency_keys WHERE guest_session_id = '" + id + "'", "outbox WHERE headers ->> 'orderingKey' = '" + id + "'"} {
		if h.Count(table) != 0 {
			found = append(found, table)
		}
	}
	return found
}

// isCleared says that an answer tells the guest to come back as somebody else.
func (a *answer) isCleared() bool {
	return a.StatusCode == 503 && a.Retriable && a.Header.Get("Retry-After") != "" && strings.Contains(a.Text, "cleared") && a.Cookie() == ""
}

func TestAMintBesideAClearIsRefusedAndLeavesNothing(t *testing.T) {
	h := newHouse(t)
	guest := h.guest("k1")
	id := strings.TrimPrefix(guest[1], "gms_id=")
	minted := h.Count("handoff_replay_log")
	redistest.After(h.Parts.Redis, func() { h.clear(id) }) // the mint has been admitted
	if a := h.post(h.body(), guest...); !a.isCleared() {
		t.Errorf("%d %s", a.StatusCode, a.Text)
	}
	if left := h.left(id); len(left) != 0 || h.Count("handoff_replay_log") != minted {
		t.Errorf("left: %v; %d handoffs more", left, h.Count("handoff_replay_log")-minted)
	}
	if a := h.mint(h.body(), guest...); a.Cookie() == id || a.replayed() {
		t.Error("the cleared session mints")
	}
}

func TestAClearThatDiedHalfWayIsFinishedByTheMint(t *testing.T) {
	h := newHouse(t)
	guest := h.guest("k1")
	id := strings.TrimPrefix(guest[1], "gms_id=")
	h.bury(id)
	minted := h.Count("handoff_replay_log")
	if a := h.post(h.body(), guest...); !a.isCleared() || h.Count("handoff_replay_log") != minted {
		t.Errorf("%d %s", a.StatusCode, a.Text)
	}
	if left := h.left(id); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if a := h.mint(h.body(), guest...); a.Cookie() == id {
		t.Error("the buried session mints")
	}
}

func TestWhileRedisIsAwayABuriedSessionMintsNothing(t *testing.T) {
	h := newHouse(t)
	guest := h.guest("k1")
	h.bury(strings.TrimPrefix(guest[1], "gms_id="))
	minted := h.Count("handoff_replay_log")
	h.Redis.Break()
	if a := h.post(h.body(), guest...); !a.isCleared() || h.Count("handoff_replay_log") != minted {
		t.Errorf("%d %s", a.StatusCode, a.Text)
	}
}
