package idempotency

import (
	"context"
	"errors"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// Two requests under one key: what the second is told depends on what becomes of the first, and not on when it asks.
func TestAKeyIsUsedOnlyByWhatWasDone(t *testing.T) {
	refusal := problem.New(problem.TenantSuspended, "", nil)
	for name, c := range map[string]struct {
		fail error
		want problem.Kind // zero: the second is done
	}{
		"the first is refused": {refusal, problem.Kind{}},
		"the first is done":    {nil, problem.IdempotencyKeyReused},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			release, ended := h.held("k", c.fail)
			q := request("k", "b")
			pipe := h.rdb.Pipeline()
			seen := h.room.Peek(t.Context(), pipe, q) // finds the first at work
			pipe.Exec(t.Context())
			release()
			if err := <-ended; !errors.Is(err, c.fail) {
				t.Fatal(err)
			}
			a, unkept, err := h.room.Do(t.Context(), q, seen, work)
			unkept.Keep(t.Context(), h.rdb)
			if c.want != (problem.Kind{}) {
				if !is(err, c.want) {
					t.Errorf("%v", err)
				}
			} else if err != nil || a.Replayed {
				t.Errorf("%v, replayed %t", err, a.Replayed)
			}
			if n := h.done(); n != 1 {
				t.Errorf("done %d times", n)
			}
		})
	}
}

func TestWhoAsksForSomethingElseMeanwhileIsToldToAskAgain(t *testing.T) {
	h := newHouse(t)
	release, ended := h.held("k", nil)
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), answering+50*time.Millisecond)
	defer cancel()
	_, err := h.do(ctx, request("k", "b"), work)
	p, ok := errors.AsType[*problem.Problem](err)
	if !ok || p.Kind != problem.IdempotencyInProgress || !p.Kind.Retriable || p.RetryAfter != time.Second {
		t.Errorf("%v", err)
	}
	release()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
