package redisclient

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

func TestPipelineBatcher_ReturnsEachCallersReplies(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t)
	c := Open(Config{Addr: server.Addr})
	defer c.Close()
	trips := redistest.Count(c)
	const callers, times = 64, 50
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			key := fmt.Sprint("k", caller)
			for n := range times {
				pipe := c.Pipeline()
				set := pipe.Set(t.Context(), key, fmt.Sprint(caller, " ", n), 0)
				refused := pipe.LPush(t.Context(), key, "x")
				got := pipe.Get(t.Context(), key)
				pipe.Exec(t.Context())
				if set.Err() != nil || refused.Err() == nil || got.Val() != fmt.Sprint(caller, " ", n) {
					t.Errorf("caller %d: got SET error %v, LPUSH error %v, GET %q", caller, set.Err(), refused.Err(), got.Val())
				}
			}
		})
	}
	all.Wait()
	if n := trips.TakeCount(); n >= callers*times {
		t.Errorf("got %d round trips for %d pipelines, want fewer", n, callers*times)
	}
}

func TestPipelineBatcher_HungServerFailsCallersInTime(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t)
	c := Open(Config{Addr: server.Addr})
	defer c.Close()
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	server.Hang()
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			pipe := c.Pipeline()
			got := pipe.Get(ctx, "k")
			pipe.Exec(ctx)
			if !IsUnavailable(got.Err()) {
				t.Errorf("got %q, %v, want an unavailable Redis", got.Val(), got.Err())
			}
		})
	}
	all.Wait()
}
