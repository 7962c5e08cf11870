package idempotency

import (
	"context"
	"errors"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// Of two different requests with one key, the result of the second depends on the result of the
// first, not on the time of the second.
func TestStoreDo_KeyIsTakenOnlyBySuccess(t *testing.T) {
	rejection := problem.New(problem.TenantSuspended, "", nil)
	for name, c := range map[string]struct {
		fail error
		want problem.Kind // zero: the second request succeeds
	}{
		"the first fails":    {rejection, problem.Kind{}},
		"the first succeeds": {nil, problem.IdempotencyKeyReused},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			release, ended := h.blockedDo("k", c.fail)
			q := newRequest("k", "b")
			pipe := h.rdb.Pipeline()
			attempt := h.store.Enqueue(t.Context(), pipe, q) // finds the claim of the first request
			pipe.Exec(t.Context())
			release()
			if err := <-ended; !errors.Is(err, c.fail) {
				t.Fatal(err)
			}
			a, pending, err := h.store.Do(t.Context(), q, attempt, insertRow)
			pipe = h.rdb.Pipeline()
			pending.Enqueue(t.Context(), pipe)
			lua.Exec(t.Context(), pipe)
			if c.want != (problem.Kind{}) {
				if !isKind(err, c.want) {
					t.Errorf("error %v, want %v", err, c.want)
				}
			} else if err != nil || a.Replayed {
				t.Errorf("error %v, replayed %t; want a new response", err, a.Replayed)
			}
			if n := h.countRows(); n != 1 {
				t.Errorf("%d rows, want 1", n)
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
		t.Errorf("error %v, want IdempotencyInProgress with a retry after 1s", err)
	}
	release()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
