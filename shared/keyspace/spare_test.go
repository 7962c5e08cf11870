package keyspace

import (
	"runtime"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
)

func TestASpareConnectionIsReadyAndOne(t *testing.T) {
	server := redistest.Server(t)
	c := Open(Config{Addr: server.Addr}).(*client)
	defer c.Close()
	trips := redistest.Count(c)
	s := &spare{client: c.twin}
	for range 8 {
		s.ready()
	}
	for s.dialling.Load() {
		runtime.Gosched()
	}
	if stats := c.PoolStats(); stats.IdleConns != 1 || stats.TotalConns != 1 {
		t.Errorf("%d connections, %d idle", stats.TotalConns, stats.IdleConns)
	}
	if s.ready(); s.dialling.Load() {
		t.Error("another is made beside one that is idle")
	}
	if n := trips.Take(); n != 0 {
		t.Errorf("%d round trips were counted", n)
	}
}
