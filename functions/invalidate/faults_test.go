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
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

// deliverUntilAcked delivers an event until it is acknowledged, as Pub/Sub does.
func (h *harness) deliverUntilAcked(e functest.PlatformEvent) response {
	h.T.Helper()
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
			h.T.Fatalf("got %+v, want an acknowledgement within 20 s", got)
		}
	}
}

func TestTenantSuspended_AppliedAfterRedisRecovers(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	tenant, now := newTenantID(), time.Now()
	h.isSuspended(tenant) // loads the set into Redis
	h.addCacheEntry("page", cache.TenantTag(tenant))
	e := suspendedEvent(tenant, now)
	h.Redis.Break()
	if got := h.deliver(e); got.Status != 503 || h.IsProcessed(e.ID) {
		t.Errorf("got %+v, processed %t, want 503 and not processed", got, h.IsProcessed(e.ID))
	}
	if n := h.Count(`tenant_suspended_cache`); n != 1 {
		t.Errorf("got %d rows of suspended tenants, want 1: a handoff could be minted", n)
	}
	h.Redis.Heal()
	if got := h.deliverUntilAcked(e); got.Outcome != "done" || got.Removed != 1 || !h.IsProcessed(e.ID) {
		t.Errorf("got %+v, want outcome done and 1 removed entry", got)
	}
	h.expectSuspended(tenant, true)
	h.expectCacheState("page", cache.Miss)
	if got := h.deliver(e); got.Outcome != "again" {
		t.Errorf("got %+v, want outcome again", got)
	}
}

func TestTenantSuspended_SupersededDuringOutageHasNoEffect(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	tenant, now := newTenantID(), time.Now()
	old, newest := suspendedEvent(tenant, now), reinstatedEvent(tenant, now.Add(time.Second))
	h.Redis.Break()
	h.deliver(old) // recorded in Postgres only
	h.Redis.Heal()
	h.deliverUntilAcked(newest)
	if got := h.deliverUntilAcked(old); got.Outcome != "done" {
		t.Errorf("got %+v, want outcome done", got)
	}
	h.expectSuspended(tenant, false)
}

func TestTenantSuspended_RestoredAfterRedisDataLoss(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	tenant, other, now := newTenantID(), newTenantID(), time.Now()
	h.mustProcess(suspendedEvent(tenant, now))
	h.mustProcess(suspendedEvent(other, now))
	for _, script := range []bool{false, true} {
		h.RDB.FlushAll(t.Context())
		if script {
			h.RDB.ScriptFlush(t.Context())
		}
		h.expectSuspended(tenant, true)
		h.expectSuspended(other, true)
	}
	h.RDB.FlushAll(t.Context())
	h.mustProcess(reinstatedEvent(tenant, now.Add(time.Second)))
	h.expectSuspended(tenant, false)
	h.expectSuspended(other, true)
}

func TestTenantSuspended_FailsWithoutPostgres(t *testing.T) {
	t.Parallel()
	h := newHarnessWithProxy(t)
	tenant := newTenantID()
	h.addCacheEntry("page", cache.TenantTag(tenant))
	e := suspendedEvent(tenant, time.Now())
	h.PostgresProxy.Break()
	if got := h.deliver(e); got.Status != 503 {
		t.Errorf("got %+v, want 503", got)
	}
	h.expectCacheState("page", cache.Hit)
	if got := h.post(suspendedPath, "nonsense"); got.Status != 503 {
		t.Errorf("unreadable message: got %+v, want 503, so that it is not lost", got)
	}
	h.Heal()
	if got := h.deliverUntilAcked(e); got.Outcome != "done" || got.Removed != 1 {
		t.Errorf("got %+v, want outcome done and 1 removed entry", got)
	}
	h.expectSuspended(tenant, true)
	if got := h.post(suspendedPath, "nonsense"); got.Outcome != "parked" || h.Quarantined() != 1 {
		t.Errorf("got %+v and %d quarantined messages, want outcome parked and 1", got, h.Quarantined())
	}
}

func TestTenantSuspended_ConcurrentDeliveriesApplyOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	tenant, now := newTenantID(), time.Now()
	h.addCacheEntry("page", cache.TenantTag(tenant))
	e := suspendedEvent(tenant, now)
	var all errgroup.Group
	for range 30 {
		all.Go(func() error { h.deliverUntilAcked(e); return nil })
	}
	_ = all.Wait()
	if n := h.Count(`inbox`); n != 1 || !h.IsProcessed(e.ID) {
		t.Errorf("got %d inbox rows, processed %t, want 1 processed row", n, h.IsProcessed(e.ID))
	}
	h.expectSuspended(tenant, true)
	h.expectCacheState("page", cache.Miss)
}

func TestInvalidateReceive_TruncatedPushIsNotAcknowledged(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	body := themeEvent(newTenantID()).Message().Body(t)
	r := httptest.NewRequest("POST", themePath, io.MultiReader(strings.NewReader(body[:90]), iotest.ErrReader(io.ErrUnexpectedEOF)))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != 400 || h.Quarantined() != 0 {
		t.Errorf("got %d and %d quarantined messages, want 400 and none", w.Code, h.Quarantined())
	}
}

// A load that starts before an event and ends after it must not store its old data.
func TestInvalidateReceive_DiscardsLoadStartedBeforeEvent(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	tenant, property, now := newTenantID(), newPropertyID(), time.Now()
	for name, c := range map[string]struct {
		tag string
		e   functest.PlatformEvent
	}{
		"theme": {cache.TenantTag(tenant), themeEvent(tenant)}, "suspended": {cache.TenantTag(tenant), suspendedEvent(tenant, now)},
		"reinstated": {cache.TenantTag(tenant), reinstatedEvent(tenant, now.Add(time.Hour))}, "property": {cache.PropertyTag(property), listingEvent(property, testCell)},
		"area": {cache.CellTag(parentCell(t, 6)), listingEvent(property, testCell)}, "anywhere": {cache.UnknownAreaTag, listingEvent(property, testCell)},
	} {
		started, release, stored := make(chan struct{}), make(chan struct{}), make(chan struct{})
		loader := loaderWithTags(c.tag)
		load := loader.Load
		loader.Load = func(ctx context.Context) (cache.Loaded, error) {
			close(started)
			<-release
			return load(ctx)
		}
		go func() {
			defer close(stored)
			_, _, _ = h.handlers.cache.GetOrLoad(context.Background(), keys.Key("cache", "test", name), nil, loader)
		}()
		<-started
		h.mustProcess(c.e)
		close(release)
		<-stored
		h.expectCacheState(name, cache.Miss)
	}
}
