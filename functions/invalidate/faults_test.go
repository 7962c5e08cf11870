package invalidate

import (
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/sync/errgroup"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

// deliverUntilAcked delivers as the broker does: again, until it is acknowledged.
func (h *harness) deliverUntilAcked(e platformEvent) response {
	h.t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		got := h.deliver(e)
		if got.Status == 200 {
			return got
		}
		select {
		case <-tick.C:
		case <-deadline:
			h.t.Fatalf("never acknowledged: %+v", got)
		}
	}
}

func TestTenantSuspended_AppliedAfterRedisRecovers(t *testing.T) {
	h := newHarness(t)
	tenant, now := newTenantID(), time.Now()
	h.isSuspended(tenant) // Redis has the set
	h.addCacheEntry("page", cache.TenantTag(tenant))
	e := suspendedEvent(tenant, now)
	h.redis.Break()
	if got := h.deliver(e); got.Status != 503 || h.isProcessed(e) {
		t.Errorf("%+v, processed %v", got, h.isProcessed(e))
	}
	if n := queryValue[int](h, `SELECT count(*) FROM bff_consumer.tenant_suspended_cache`); n != 1 {
		t.Errorf("%d rows: a handoff would be minted", n)
	}
	h.redis.Heal()
	if got := h.deliverUntilAcked(e); got.Outcome != "done" || got.Removed != 1 || !h.isProcessed(e) || !h.isSuspended(tenant) || h.cacheState("page") != cache.Miss {
		t.Errorf("%+v, shown %v", got, h.isSuspended(tenant))
	}
	if got := h.deliver(e); got.Outcome != "again" {
		t.Errorf("%+v", got)
	}
}

func TestTenantSuspended_SupersededDuringOutageHasNoEffect(t *testing.T) {
	h := newHarness(t)
	tenant, now := newTenantID(), time.Now()
	old, newest := suspendedEvent(tenant, now), reinstatedEvent(tenant, now.Add(time.Second))
	h.redis.Break()
	h.deliver(old) // recorded, not told
	h.redis.Heal()
	h.deliverUntilAcked(newest)
	if got := h.deliverUntilAcked(old); got.Outcome != "done" || h.isSuspended(tenant) {
		t.Errorf("%+v, shown as suspended %v", got, h.isSuspended(tenant))
	}
}

func TestTenantSuspended_RestoredAfterRedisDataLoss(t *testing.T) {
	h := newHarness(t)
	tenant, other, now := newTenantID(), newTenantID(), time.Now()
	h.mustProcess(suspendedEvent(tenant, now))
	h.mustProcess(suspendedEvent(other, now))
	for _, script := range []bool{false, true} {
		h.rdb.FlushAll(t.Context())
		if script {
			h.rdb.ScriptFlush(t.Context())
		}
		if !h.isSuspended(tenant) || !h.isSuspended(other) {
			t.Error("forgotten with Redis")
		}
	}
	h.rdb.FlushAll(t.Context())
	h.mustProcess(reinstatedEvent(tenant, now.Add(time.Second)))
	if h.isSuspended(tenant) || !h.isSuspended(other) {
		t.Error("not what the record says")
	}
}

func TestTenantSuspended_FailsWithoutPostgres(t *testing.T) {
	url, proxy := pgtest.ProxiedURL(t)
	h := newHarnessOn(t, url)
	tenant := newTenantID()
	h.addCacheEntry("page", cache.TenantTag(tenant))
	e := suspendedEvent(tenant, time.Now())
	proxy.Break()
	if got := h.deliver(e); got.Status != 503 || h.cacheState("page") != cache.Hit {
		t.Errorf("%+v, page %s", got, h.cacheState("page"))
	}
	if got := h.post("tenant-suspended", "nonsense"); got.Status != 503 {
		t.Errorf("what cannot be read is acknowledged and lost: %+v", got)
	}
	proxy.Heal()
	if got := h.deliverUntilAcked(e); got.Outcome != "done" || got.Removed != 1 || !h.isSuspended(tenant) {
		t.Errorf("%+v", got)
	}
	if got := h.post("tenant-suspended", "nonsense"); got.Outcome != "parked" || h.countQuarantined() != 1 {
		t.Errorf("%+v", got)
	}
}

func TestTenantSuspended_ConcurrentDeliveriesApplyOnce(t *testing.T) {
	h := newHarness(t)
	tenant, now := newTenantID(), time.Now()
	h.addCacheEntry("page", cache.TenantTag(tenant))
	e := suspendedEvent(tenant, now)
	var all errgroup.Group
	for range 30 {
		all.Go(func() error { h.deliverUntilAcked(e); return nil })
	}
	_ = all.Wait()
	if n := queryValue[int](h, `SELECT count(*) FROM bff_consumer.inbox`); n != 1 || !h.isProcessed(e) || !h.isSuspended(tenant) || h.cacheState("page") != cache.Miss {
		t.Errorf("%d rows, processed %v, shown %v", n, h.isProcessed(e), h.isSuspended(tenant))
	}
}

func TestInvalidateReceive_TruncatedPushIsNotAcknowledged(t *testing.T) {
	h := newHarness(t)
	body := themeEvent(newTenantID()).pushBody("1")
	r := httptest.NewRequest("POST", "/internal/events/theme-published", io.MultiReader(strings.NewReader(body[:90]), iotest.ErrReader(io.ErrUnexpectedEOF)))
	w := httptest.NewRecorder()
	h.mux.ServeHTTP(w, r)
	if w.Code != 400 || h.countQuarantined() != 0 {
		t.Errorf("%d, %d parked", w.Code, h.countQuarantined())
	}
}

// TestInvalidateReceive_DiscardsLoadStartedBeforeEvent holds a fill open across each event that changes what it would say.
func TestInvalidateReceive_DiscardsLoadStartedBeforeEvent(t *testing.T) {
	h := newHarness(t)
	tenant, property, now := newTenantID(), newPropertyID(), time.Now()
	for name, c := range map[string]struct {
		tag string
		e   platformEvent
	}{
		"theme": {cache.TenantTag(tenant), themeEvent(tenant)}, "suspended": {cache.TenantTag(tenant), suspendedEvent(tenant, now)},
		"reinstated": {cache.TenantTag(tenant), reinstatedEvent(tenant, now.Add(time.Hour))}, "property": {cache.PropertyTag(property), listingEvent(property, testCell)},
		"area": {cache.CellTag(parentCell(t, 6)), listingEvent(property, testCell)}, "anywhere": {cache.UnknownAreaTag, listingEvent(property, testCell)},
	} {
		begun, ended, filled := make(chan struct{}), make(chan struct{}), make(chan struct{})
		recipe := loaderWithTags(c.tag)
		fill := recipe.Load
		recipe.Load = func(ctx context.Context) (cache.Loaded, error) {
			close(begun)
			<-ended
			return fill(ctx)
		}
		go func() {
			defer close(filled)
			_, _, _ = h.handlers.cache.GetOrLoad(context.Background(), keys.Key("cache", "test", name), nil, recipe)
		}()
		<-begun
		h.mustProcess(c.e)
		close(ended)
		<-filled
		if h.cacheState(name) != cache.Miss {
			t.Errorf("%s: the old answer was put back", name)
		}
	}
}
