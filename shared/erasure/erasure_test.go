package erasure

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/idempotency"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
)

// Serial: the mutation and the erasure have timeouts of 1 s and 1.5 s, from before the lock is
// released.
func TestEraser_WaitsForRunningMutationAndErasesIt(t *testing.T) {
	h := newHarness(t)
	release := h.holdLock()
	type result struct {
		pending *idempotency.PendingCopy
		err     error
	}
	mutation, erasure := make(chan result), make(chan error)
	go func() {
		// after the write of the record, before the commit
		c, err := h.runOnce("k", `SELECT pg_advisory_xact_lock(42)`)
		mutation <- result{c, err}
	}()
	h.awaitLockWaiters(1)
	go func() { erasure <- h.begin() }()
	h.awaitLockWaiters(2)
	release()
	m := <-mutation
	h.must(m.err)
	h.must(<-erasure)
	h.must(h.Finish(t.Context(), sessionID))
	h.storeCopy(m.pending) // late
	h.requireErased()
}

// Serial, like the test above.
func TestEraser_MutationsOfOneSessionRunInParallel(t *testing.T) {
	h := newHarness(t)
	release := h.holdLock()
	done := make(chan error)
	for _, key := range []string{"k1", "k2"} {
		go func() {
			_, err := h.runOnce(key, `SELECT pg_advisory_xact_lock_shared(42)`)
			done <- err
		}()
	}
	h.awaitLockWaiters(2)
	if got := queryValue[int](t, h.db, countLockWaiters+` AND objid <> 42`); got != 0 {
		t.Errorf("%d mutations wait for the lock of the session, want 0", got)
	}
	release()
	for range 2 {
		h.must(<-done)
	}
}

func TestEraser_ClearedSessionAcceptsNoMutation(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	_, err := h.db.Exec(t.Context(), `CREATE TABLE mutations (name text)`)
	h.must(err)
	h.must(h.begin())
	for range 2 { // the first rejection releases the claim
		if _, err := h.runOnce("k", `INSERT INTO mutations VALUES ('m')`); !errors.Is(err, session.ErrCleared) {
			t.Errorf("error %v, want ErrCleared", err)
		}
	}
	if got := queryValue[int](t, h.db, `SELECT count(*) FROM mutations`); got != 0 {
		t.Errorf("%d mutations, want 0", got)
	}
	h.requireErased()
}

// writeSession writes two idempotent answers, a session hash and lists with two search sessions.
func (h *harness) writeSession() {
	h.t.Helper()
	for _, key := range []string{"k1", "k2"} {
		c, err := h.runOnce(key, `SELECT 1`)
		h.must(err)
		h.storeCopy(c)
	}
	const running, past = "srs_01H8YN7QV4D8KZ4F8Y5CK4MV3D", "srs_01H8YN7QV4D8KZ4F8Y5CK4MV3E"
	ctx, pipe := h.t.Context(), h.rdb.Pipeline()
	pipe.HSet(ctx, keys.Session(sessionID), "activeSearches", strings.Repeat("a", 16)+"="+running)
	pipe.LPush(ctx, keys.SessionPart(sessionID, "history"), `{"searchSessionId":"`+past+`"}`)
	pipe.LPush(ctx, keys.SessionPart(sessionID, "recent"), `{}`)
	for _, id := range []string{running, past} {
		pipe.HSet(ctx, keys.Key("srs", id), "guestSessionId", sessionID)
	}
	_, err := pipe.Exec(ctx)
	h.must(err)
}

func TestEraserFinish_IsRepeatableAfterFailure(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.writeSession()
	h.must(h.begin())
	hook := &failingHook{}
	h.rdb.AddHook(hook)
	for n := 0; ; n++ { // Redis fails after n round trips
		hook.remaining, hook.enabled = n, true
		err := h.Finish(t.Context(), sessionID)
		hook.enabled = false
		if err == nil {
			break
		}
		if !errors.Is(err, errOutage) {
			t.Fatalf("after %d round trips: error %v, want the outage", n, err)
		}
	}
	h.requireErased()
}

func TestEraserHandleCleared_FinishesErasureAndReturnsProblem(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.writeSession()
	h.must(h.begin())
	err := h.HandleCleared(t.Context(), sessionID, session.ErrCleared)
	if want := ClearedProblem(session.ErrCleared).Error(); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	h.requireErased()
}

func TestEraserHandleCleared_ReturnsOtherErrorsUnchanged(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{"nil": nil, "other error": errOutage} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := (&Eraser{}).HandleCleared(t.Context(), sessionID, err); got != err {
				t.Errorf("error %v, want %v", got, err)
			}
		})
	}
}

// failingHook fails the commands of a Redis client after some round trips.
type failingHook struct {
	enabled   bool
	remaining int // round trips before the outage
}

var errOutage = errors.New("outage")

func (f *failingHook) shouldFail() bool {
	f.remaining--
	return f.enabled && f.remaining < 0
}

func (f *failingHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *failingHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if f.shouldFail() {
			cmd.SetErr(errOutage)
			return errOutage
		}
		return next(ctx, cmd)
	}
}

func (f *failingHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if f.shouldFail() {
			for _, cmd := range cmds {
				cmd.SetErr(errOutage)
			}
			return errOutage
		}
		return next(ctx, cmds)
	}
}
