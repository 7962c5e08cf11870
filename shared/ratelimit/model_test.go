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

// observation is when the server was asked for a request, and what it said.
type observation struct {
	at    int64 // µs since 1970
	taken bool
}

// replayModel is how many requests the model lets through that come at those moments.
func replayModel(p rate, moments []observation) (through int) {
	slices.SortFunc(moments, func(a, b observation) int { return cmp.Compare(a.at, b.at) })
	var full int64
	for _, m := range moments {
		if lack, ok := p.spend(time.Duration(full-m.at) * time.Microsecond); ok {
			full = m.at + lack.Microseconds()
			through++
		}
	}
	return through
}

func TestLimiter_HundredClientsMatchModel(t *testing.T) {
	const buckets, clients, each = 100, 100, 3
	d := newHarness(t, redistest.New(t), limits(240, noLimit, noLimit)) // a burst of 60, and 4 a second: 300 ask
	var mu sync.Mutex
	asked := map[string][]observation{}
	begin := make(chan struct{})
	var all sync.WaitGroup
	for client := range clients {
		all.Go(func() {
			<-begin
			for i := range buckets * each {
				cookie := guest((i + client) % buckets).Cookie
				ctx := context.Background()
				pipe := d.rdb.Pipeline()
				a := d.Enqueue(ctx, pipe, Read, Client{Cookie: cookie})
				lua.Exec(ctx, pipe)
				spent, err := lua.ParseSpend(a.buckets[0].cmd)
				if s := d.Resolve(ctx, a); err != nil || s.Refused == spent.Taken {
					t.Errorf("%v: %+v of %+v", err, s, spent)
				}
				mu.Lock()
				asked[cookie] = append(asked[cookie], observation{spent.ServerTime, spent.Taken})
				mu.Unlock()
			}
		})
	}
	close(begin)
	all.Wait()
	if len(asked) != buckets {
		t.Fatalf("%d buckets", len(asked))
	}
	refused := 0
	for cookie, moments := range asked {
		through := 0
		for _, m := range moments {
			if m.taken {
				through++
			}
		}
		refused += len(moments) - through
		if want := replayModel(newRate(240), moments); through < want-1 || through > want+1 {
			t.Errorf("%s: %d let through, the model says %d", cookie, through, want)
		}
	}
	if refused == 0 {
		t.Error("nobody was refused, so nothing was compared")
	}
}

// Cookies that are refused by their own bucket, or by the address they share, take of the other only for a moment: what an
// address has lost in the end is what was let through.
func TestLimiter_ConcurrentRefusalsConsumeNothing(t *testing.T) {
	const addresses, cookies, each = 5, 6, 40
	d := newHarness(t, redistest.New(t), limits(8, noLimit, 200)) // bursts of 2 and 50: 12 of 240 are let through
	var mu sync.Mutex
	through := map[string]int{}
	began := time.Now()
	var all sync.WaitGroup
	for n := range addresses * cookies {
		all.Go(func() {
			c := guest(n)
			c.Address = guest(n % addresses).Address
			let := d.countAllowed(each, Read, c)
			mu.Lock()
			through[c.Address] += let
			mu.Unlock()
		})
	}
	all.Wait()
	p := newRate(200)
	for address, let := range through {
		lost := p.interval*time.Duration(let) - d.untilFull(Read, "address", address)
		took := time.Since(began)
		gained := int(took/newRate(8).interval) + 1
		if let > cookies*(2+gained) || let < cookies {
			t.Errorf("%s: %d let through in %s", address, let, took)
		}
		if lost < -p.interval || lost > took+p.interval {
			t.Errorf("%s: %d let through in %s, and it lacks %s less", address, let, took, lost)
		}
	}
}
