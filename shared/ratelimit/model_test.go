package ratelimit

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

// observation is the server's answer for one request.
type observation struct {
	at    int64 // µs since 1970, by the server's clock
	taken bool
}

// replayModel returns the number of requests that the model allows at the observed times.
func replayModel(r rate, observations []observation) (allowed int) {
	slices.SortFunc(observations, func(a, b observation) int { return cmp.Compare(a.at, b.at) })
	var full int64
	for _, o := range observations {
		if deficit, ok := r.spend(time.Duration(full-o.at) * time.Microsecond); ok {
			full = o.at + deficit.Microseconds()
			allowed++
		}
	}
	return allowed
}

func TestLimiter_HundredClientsMatchModel(t *testing.T) {
	const buckets, clients, each = 100, 100, 3
	// a burst of 60 and 4 a second, for 300 requests
	h := newHarness(t, redistest.New(t), limits(240, noLimit, noLimit))
	var mu sync.Mutex
	observed := map[string][]observation{}
	start := make(chan struct{})
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			<-start
			for i := range buckets * each {
				cookie := guest((i + client) % buckets).Cookie
				ctx := context.Background()
				pipe := h.rdb.Pipeline()
				pending := h.Enqueue(ctx, pipe, Read, Client{Cookie: cookie})
				lua.Exec(ctx, pipe)
				spent, err := lua.ParseSpend(pending.buckets[0].cmd)
				if got := h.Resolve(ctx, pending); err != nil || got.Refused == spent.Taken {
					t.Errorf("%+v from the reply %+v, error %v", got, spent, err)
				}
				mu.Lock()
				observed[cookie] = append(observed[cookie], observation{spent.ServerTime, spent.Taken})
				mu.Unlock()
			}
		})
	}
	close(start)
	all.Wait()
	if len(observed) != buckets {
		t.Fatalf("%d buckets, want %d", len(observed), buckets)
	}
	refused := 0
	for cookie, observations := range observed {
		allowed := 0
		for _, o := range observations {
			if o.taken {
				allowed++
			}
		}
		refused += len(observations) - allowed
		if want := replayModel(newRate(240), observations); allowed < want-1 || allowed > want+1 {
			t.Errorf("%s: %d requests allowed, want %d by the model", cookie, allowed, want)
		}
	}
	if refused == 0 {
		t.Error("no request was refused, so the test compared nothing")
	}
}

// A request that its cookie's bucket refuses takes from the shared address bucket only until the
// refund. In the end the address bucket lacks exactly the allowed requests.
func TestLimiter_ConcurrentRefusalsConsumeNothing(t *testing.T) {
	const addresses, cookies, each = 5, 6, 40
	// bursts of 2 and 50: 12 of 240 requests are allowed
	h := newHarness(t, redistest.New(t), limits(8, noLimit, 200))
	var mu sync.Mutex
	allowed := map[string]int{}
	began := time.Now()
	var all sync.WaitGroup
	for n := range addresses * cookies {
		all.Go(func() {
			c := guest(n)
			c.Address = guest(n % addresses).Address
			n := h.countAllowed(each, Read, c)
			mu.Lock()
			allowed[c.Address] += n
			mu.Unlock()
		})
	}
	all.Wait()
	r := newRate(200)
	for address, n := range allowed {
		difference := r.interval*time.Duration(n) - h.untilFull(Read, "address", address)
		took := time.Since(began)
		gained := int(took/newRate(8).interval) + 1
		if low, high := cookies, cookies*(2+gained); n < low || n > high {
			t.Errorf("%s: %d requests allowed in %s, want %d to %d", address, n, took, low, high)
		}
		if difference < -r.interval || difference > took+r.interval {
			t.Errorf("%s: the deficit differs from %d allowed requests by %s after %s", address, n, difference, took)
		}
	}
}
