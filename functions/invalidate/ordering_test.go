package invalidate

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
)

// history is what happened to one tenant, and what is true of it in the end.
type history struct {
	tenant    string
	events    []platformEvent // in the order they are delivered, some more than once
	suspended bool
}

// randomHistory has up to five events within four milliseconds, so that times are equal now and then.
func randomHistory(r *rand.Rand) history {
	h := history{tenant: newTenantID()}
	began := time.Date(2020, 11, 20, 12, 0, 0, 0, time.UTC)
	newest := time.Time{}
	for range 1 + r.IntN(5) {
		at, suspended := began.Add(time.Duration(r.IntN(4))*time.Millisecond), r.IntN(2) == 0
		e := reinstatedEvent(h.tenant, at)
		if suspended {
			e = suspendedEvent(h.tenant, at)
		}
		for range 1 + r.IntN(2) {
			h.events = append(h.events, e)
		}
		switch {
		case at.After(newest):
			newest, h.suspended = at, suspended
		case at.Equal(newest):
			h.suspended = h.suspended || suspended
		}
	}
	r.Shuffle(len(h.events), func(i, j int) { h.events[i], h.events[j] = h.events[j], h.events[i] })
	return h
}

// TestTenantSuspended_NewestEventWinsInAnyOrder delivers histories in random order with repetitions, half of them
// all at once, while instances read the set and Redis forgets everything now and then.
func TestTenantSuspended_NewestEventWinsInAnyOrder(t *testing.T) {
	const orders, aside = 1000, 8
	h := newHarness(t)
	instance := tenants.New(h.rdb, h.handlers.db, keys, time.Now)
	over := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					peeked := h.rdb.Get(context.Background(), keys.Key("{"+keys.Key("tenant-suspended")+"}", "version"))
					instance.Resolve(context.Background(), peeked)
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(4, 2026))
	histories := make([]history, orders)
	for i := range histories {
		histories[i] = randomHistory(random)
	}
	var all errgroup.Group
	all.SetLimit(aside)
	for i, history := range histories {
		all.Go(func() error {
			if i%50 == 49 {
				h.rdb.FlushAll(context.Background())
			}
			var some errgroup.Group
			if i%2 == 0 {
				some.SetLimit(1)
			}
			for _, e := range history.events {
				some.Go(func() error { h.deliverUntilAcked(e); return nil })
			}
			return some.Wait()
		})
	}
	_ = all.Wait()
	close(over)
	readers.Wait()

	for round := range 2 { // what is there, and what is restored from the record
		set := suspendedSet(t, h)
		for _, history := range histories {
			uuid, _ := id.UUID(id.Tenant, history.tenant)
			recorded := queryValue[bool](h, `SELECT suspended FROM bff_consumer.tenant_standing WHERE tenant_id = $1`, uuid)
			mirrored := queryValue[bool](h, `SELECT EXISTS (SELECT FROM bff_consumer.tenant_suspended_cache WHERE tenant_id = $1)`, uuid)
			settled := readSuspended(t, instance, h.rdb, history.tenant)
			if w := history.suspended; recorded != w || mirrored != w || settled != w || set[history.tenant] != w {
				t.Fatalf("round %d: suspended should be %v; recorded %v, mirrored %v, an instance says %v, Redis %v", round, w, recorded, mirrored, settled, set[history.tenant])
			}
		}
		h.rdb.FlushAll(context.Background())
	}
	if n := queryValue[int](h, `SELECT count(*) FROM bff_consumer.inbox WHERE processed_at IS NULL`); n != 0 {
		t.Errorf("%d events were acknowledged and not told", n)
	}
}

// suspendedSet is the set as Redis has it, once somebody has asked.
func suspendedSet(t *testing.T, h *harness) map[string]bool {
	t.Helper()
	h.isSuspended(newTenantID())
	members, err := h.rdb.SMembers(context.Background(), keys.Key("tenant-suspended")).Result()
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]bool{}
	for _, m := range members {
		set[m] = true
	}
	return set
}
