package invalidate

import (
	"context"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
)

// scriptBlocker is a Redis hook that delays the first script until release is closed.
type scriptBlocker struct {
	used    atomic.Bool
	arrived chan struct{}
	release chan struct{}
}

func (g *scriptBlocker) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (g *scriptBlocker) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (g *scriptBlocker) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") && g.used.CompareAndSwap(false, true) {
			close(g.arrived)
			<-g.release
		}
		return next(ctx, cmd)
	}
}

// The test delays a suspension between the read of the recorded status and the write to Redis. A
// later reinstatement runs meanwhile and must wait for the row lock.
func TestTenantSuspended_DelayedWriteDoesNotUndoNewerStatus(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	tenant, now := newTenantID(), time.Now()
	h.isSuspended(tenant) // loads the set into Redis
	blocker := &scriptBlocker{arrived: make(chan struct{}), release: make(chan struct{})}
	rdb := h.Redis.Client()
	rdb.AddHook(blocker)
	h.handlers.tenants = tenants.New(rdb, h.handlers.db, keys, time.Now)

	var both sync.WaitGroup
	both.Go(func() { h.deliverUntilAcked(suspendedEvent(tenant, now)) })
	<-blocker.arrived
	ended := make(chan struct{})
	both.Go(func() {
		defer close(ended)
		h.deliverUntilAcked(reinstatedEvent(tenant, now.Add(time.Second)))
	})
	h.awaitLockWait(ended)
	close(blocker.release)
	both.Wait()
	h.expectSuspended(tenant, false)
}

// awaitLockWait waits until a statement waits for a lock, or until ended is closed.
func (h *harness) awaitLockWait(ended <-chan struct{}) {
	h.T.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for queryValue[int](h, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0 {
		select {
		case <-tick.C:
		case <-ended:
			return
		case <-deadline:
			h.T.Fatal("got no statement that waits for a lock within 20 s")
		}
	}
}
