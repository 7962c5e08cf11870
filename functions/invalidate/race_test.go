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

// scriptBlocker holds up the first script that is sent to Redis, until it is let through.
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

// TestTenantSuspended_DelayedWriteDoesNotUndoNewerStatus holds a suspension up between reading the record and telling Redis,
// while the reinstatement that follows goes as far as it can.
func TestTenantSuspended_DelayedWriteDoesNotUndoNewerStatus(t *testing.T) {
	h := newHarness(t)
	tenant, now := newTenantID(), time.Now()
	h.isSuspended(tenant) // Redis has the set
	held := &scriptBlocker{arrived: make(chan struct{}), release: make(chan struct{})}
	rdb := h.redis.Client()
	rdb.AddHook(held)
	h.handlers.tenants = tenants.New(rdb, h.handlers.db, keys, time.Now)

	var both sync.WaitGroup
	both.Go(func() { h.deliverUntilAcked(suspendedEvent(tenant, now)) })
	<-held.arrived
	ended := make(chan struct{})
	both.Go(func() {
		defer close(ended)
		h.deliverUntilAcked(reinstatedEvent(tenant, now.Add(time.Second)))
	})
	h.awaitLockWait(ended)
	close(held.release)
	both.Wait()
	if h.isSuspended(tenant) {
		t.Error("the suspension that was overtaken holds")
	}
}

// awaitLockWait returns when a statement waits for a lock, or the one that should has ended without.
func (h *harness) awaitLockWait(ended <-chan struct{}) {
	h.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for queryValue[int](h, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0 {
		select {
		case <-tick.C:
		case <-ended:
			return
		case <-deadline:
			h.t.Fatal("nobody waits")
		}
	}
}
