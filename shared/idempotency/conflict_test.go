package idempotency

import (
	"context"
	"errors"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// Two requests under one key: what the second is told depends on what becomes of the first, and not on when it asks.
func TestStoreDo_KeyIsTakenOnlyBySuccess(t *testing.T) {
	refusal := problem.New(problem.TenantSuspended, "", nil)
	for name, c := range map[string]struct {
		fail error
		want problem.Kind // zero: the second is done
	}{
		"the first is refused": {refusal, problem.Kind{}},
		"the first is done":    {nil, problem.IdempotencyKeyReused},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			release, ended := h.blockedDo("k", c.fail)
			q := newRequest("k", "b")
			pipe := h.rdb.Pipeline()
			seen := h.store.Enqueue(t.Context(), pipe, q) // finds the first at work
			pipe.Exec(t.Context())
			release()
			if err := <-ended; !errors.Is(err, c.fail) {
				t.Fatal(err)
			}
			a, unkept, err := h.store.Do(t.Context(), q, seen, insertRow)
			pipe = h.rdb.Pipeline()
			unkept.Enqueue(t.Context(), pipe)
			lua.Exec(t.Context(), pipe)
			if c.want != (problem.Kind{}) {
				if !isKind(err, c.want) {
					t.Errorf("%v", err)
				}
			} else if err != nil || a.Replayed {
				t.Errorf("%v, replayed %t", err, a.Replayed)
			}
			if n := h.countRows(); n != 1 {
				t.Errorf("done %d times", n)
			}
		})
	}
}

func TestStoreDo_OtherRequestWithBusyKeyIsInProgress(t *testing.T) {
	h := newHarness(t)
	release, ended := h.blockedDo("k", nil)
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), responseReserve+50*time.Millisecond)
	defer cancel()
	_, err := h.do(ctx, newRequest("k", "b"), insertRow)
	p, ok := errors.AsType[*problem.Problem](err)
	if !ok || p.Kind != problem.IdempotencyInProgress || !p.Kind.Retriable || p.RetryAfter != time.Second {
		t.Errorf("%v", err)
	}
	release()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
