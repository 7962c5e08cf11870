package redisclient

import (
	"runtime"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

func TestPreconnect_OpensOneIdleConnection(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t)
	c := Open(Config{Addr: server.Addr}).(*client)
	defer c.Close()
	trips := redistest.Count(c)
	s := &preconnector{client: c.slow}
	for range 8 {
		s.ensureIdle()
	}
	for s.dialling.Load() {
		runtime.Gosched()
	}
	if stats := c.PoolStats(); stats.IdleConns != 1 || stats.TotalConns != 1 {
		t.Errorf("got %d connections, %d idle, want 1 and 1", stats.TotalConns, stats.IdleConns)
	}
	if s.ensureIdle(); s.dialling.Load() {
		t.Error("dials although a connection is idle")
	}
	if n := trips.TakeCount(); n != 0 {
		t.Errorf("got %d round trips, want 0", n)
	}
}
