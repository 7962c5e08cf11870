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

// gate holds up the first script that is sent to Redis, until it is let through.
type gate struct {
	taken   atomic.Bool
	arrived chan struct{}
	let     chan struct{}
}

func (g *gate) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (g *gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (g *gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") && g.taken.CompareAndSwap(false, true) {
			close(g.arrived)
			<-g.let
		}
		return next(ctx, cmd)
	}
}

// TestWhoComesSecondToRedisDoesNotUndoTheNewer holds a suspension up between reading the record and telling Redis,
// while the reinstatement that follows goes as far as it can.
func TestWhoComesSecondToRedisDoesNotUndoTheNewer(t *testing.T) {
	h := newHouse(t)
	tenant, now := newTenant(), time.Now()
	h.shown(tenant) // Redis has the set
	held := &gate{arrived: make(chan struct{}), let: make(chan struct{})}
	rdb := h.redis.Client()
	rdb.AddHook(held)
	h.parts.tenants = tenants.New(rdb, h.parts.db, keys, time.Now)

	var both sync.WaitGroup
	both.Go(func() { h.insist(suspension(tenant, now)) })
	<-held.arrived
	ended := make(chan struct{})
	both.Go(func() {
		defer close(ended)
		h.insist(reinstatement(tenant, now.Add(time.Second)))
	})
	h.waitsForALock(ended)
	close(held.let)
	both.Wait()
	if h.shown(tenant) {
		t.Error("the suspension that was overtaken holds")
	}
}

// waitsForALock returns when a statement waits for a lock, or the one that should has ended without.
func (h *house) waitsForALock(ended <-chan struct{}) {
	h.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for read[int](h, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) == 0 {
		select {
		case <-tick.C:
		case <-ended:
			return
		case <-deadline:
			h.t.Fatal("nobody waits")
		}
	}
}
