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
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

// history is the events of a tenant, and the final status.
type history struct {
	tenant    string
	events    []functest.PlatformEvent // in the order of delivery, with repetitions
	suspended bool
}

// randomHistory returns a history of up to five events within four milliseconds, so that some times
// are equal.
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

// The test delivers histories in random order with repetitions, half of them concurrently.
// Meanwhile instances read the set of suspended tenants, and Redis loses all data now and then.
func TestTenantSuspended_NewestEventWinsInAnyOrder(t *testing.T) {
	t.Parallel()
	const histories, concurrent = 1000, 8
	h := newHarness(t)
	h.Log.Discard()
	instance := tenants.New(h.RDB, h.handlers.db, keys, time.Now)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					version := h.RDB.Get(context.Background(), keys.Key("{"+keys.Key("tenant-suspended")+"}", "version"))
					instance.Resolve(context.Background(), version)
				}
			}
		})
	}
	random := rand.New(rand.NewPCG(4, 2026))
	all := make([]history, histories)
	for i := range all {
		all[i] = randomHistory(random)
	}
	var deliveries errgroup.Group
	deliveries.SetLimit(concurrent)
	for i, history := range all {
		deliveries.Go(func() error {
			if i%50 == 49 {
				h.RDB.FlushAll(context.Background())
			}
			var events errgroup.Group
			if i%2 == 0 {
				events.SetLimit(1)
			}
			for _, e := range history.events {
				events.Go(func() error { h.deliverUntilAcked(e); return nil })
			}
			return events.Wait()
		})
	}
	_ = deliveries.Wait()
	close(done)
	readers.Wait()

	for round := range 2 { // the second round reads what is restored from Postgres
		set := suspendedSet(t, h)
		for _, history := range all {
			uuid, _ := id.UUID(id.Tenant, history.tenant)
			recorded := queryValue[bool](h, `SELECT suspended FROM bff_consumer.tenant_standing WHERE tenant_id = $1`, uuid)
			mirrored := queryValue[bool](h, `SELECT EXISTS (SELECT FROM bff_consumer.tenant_suspended_cache WHERE tenant_id = $1)`, uuid)
			cached := readSuspended(t, instance, h.RDB, history.tenant)
			if w := history.suspended; recorded != w || mirrored != w || cached != w || set[history.tenant] != w {
				t.Fatalf("round %d: suspended: got %t recorded, %t mirrored, %t in an instance, %t in Redis, want %t", round, recorded, mirrored, cached, set[history.tenant], w)
			}
		}
		h.RDB.FlushAll(context.Background())
	}
	if n := h.Count(`inbox WHERE processed_at IS NULL`); n != 0 {
		t.Errorf("got %d acknowledged events without an effect in Redis, want none", n)
	}
}

// suspendedSet returns the members of the set in Redis, after a read has restored it.
func suspendedSet(t *testing.T, h *harness) map[string]bool {
	t.Helper()
	h.isSuspended(newTenantID())
	members, err := h.RDB.SMembers(context.Background(), keys.Key("tenant-suspended")).Result()
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]bool{}
	for _, m := range members {
		set[m] = true
	}
	return set
}
