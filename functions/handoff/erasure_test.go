package handoff

import (
	"context"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

// startErasure erases a session in Postgres only, like a clear that has not reached Redis.
func (h *harness) startErasure(id string) {
	h.T.Helper()
	if err := h.Deps.Eraser.Begin(context.Background(), &session.Session{ID: id}); err != nil {
		h.T.Error(err)
	}
}

// erase erases a session in all stores.
func (h *harness) erase(id string) {
	h.T.Helper()
	h.startErasure(id)
	if err := h.Deps.Eraser.Finish(context.Background(), id); err != nil {
		h.T.Error(err)
	}
}

// remaining returns the stored data of a session, and any idempotency key, except the ledger and
// the mark of a clear.
func (h *harness) remaining(id string) (found []string) {
	h.T.Helper()
	for _, key := range h.Deps.Redis.Keys(context.Background(), "*").Val() {
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

// isCleared reports whether the answer is the retriable refusal of a cleared session.
func (a *response) isCleared() bool {
	return a.StatusCode == 503 && a.Retriable && a.Header.Get("Retry-After") != "" && strings.Contains(a.Text, "cleared") && a.SessionCookie() == ""
}

func TestHandoffMint_DuringErasureIsRejected(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	guest := h.guestHeaders("k1")
	id := strings.TrimPrefix(guest[1], "gms_id=")
	minted := h.Count("handoff_replay_log")
	redistest.AfterNextPipeline(h.Deps.Redis, func() { h.erase(id) }) // after Begin
	if a := h.post(h.requestBody(), guest...); !a.isCleared() {
		t.Errorf("got %d %s; want a refusal as cleared", a.StatusCode, a.Text)
	}
	if left := h.remaining(id); len(left) != 0 || h.Count("handoff_replay_log") != minted {
		t.Errorf("got %v and %d handoffs more; want everything erased", left, h.Count("handoff_replay_log")-minted)
	}
	if a := h.mustMint(h.requestBody(), guest...); a.SessionCookie() == id || a.replayed() {
		t.Error("the cleared session minted")
	}
}

func TestHandoffMint_CompletesPartialErasure(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	guest := h.guestHeaders("k1")
	id := strings.TrimPrefix(guest[1], "gms_id=")
	h.startErasure(id)
	minted := h.Count("handoff_replay_log")
	if a := h.post(h.requestBody(), guest...); !a.isCleared() || h.Count("handoff_replay_log") != minted {
		t.Errorf(`got %d %s; want a refusal as cleared, %d handoffs`, a.StatusCode, a.Text, minted)
	}
	if left := h.remaining(id); len(left) != 0 {
		t.Errorf("got %v; want everything erased", left)
	}
	if a := h.mustMint(h.requestBody(), guest...); a.SessionCookie() == id {
		t.Error("the cleared session minted")
	}
}

func TestHandoffMint_ErasedSessionIsRejectedWithoutRedis(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	guest := h.guestHeaders("k1")
	h.startErasure(strings.TrimPrefix(guest[1], "gms_id="))
	minted := h.Count("handoff_replay_log")
	h.Redis.Break()
	if a := h.post(h.requestBody(), guest...); !a.isCleared() || h.Count("handoff_replay_log") != minted {
		t.Errorf(`got %d %s; want a refusal as cleared, %d handoffs`, a.StatusCode, a.Text, minted)
	}
}
