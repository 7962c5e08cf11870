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
	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
)

// insist delivers as the broker does: again, until it is acknowledged.
func (h *house) insist(e told) receipt {
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

func TestWithoutRedisWhatIsRecordedIsToldLater(t *testing.T) {
	h := newHouse(t)
	tenant, now := newTenant(), time.Now()
	h.shown(tenant) // Redis has the set
	h.keep("page", cache.Tenant(tenant))
	e := suspension(tenant, now)
	h.redis.Break()
	if got := h.deliver(e); got.Status != 503 || h.processed(e) {
		t.Errorf("%+v, processed %v", got, h.processed(e))
	}
	if n := read[int](h, `SELECT count(*) FROM bff_consumer.tenant_suspended_cache`); n != 1 {
		t.Errorf("%d rows: a handoff would be minted", n)
	}
	h.redis.Heal()
	if got := h.insist(e); got.Outcome != "done" || got.Removed != 1 || !h.processed(e) || !h.shown(tenant) || h.state("page") != cache.Miss {
		t.Errorf("%+v, shown %v", got, h.shown(tenant))
	}
	if got := h.deliver(e); got.Outcome != "again" {
		t.Errorf("%+v", got)
	}
}

func TestWhatWasOvertakenWhileRedisWasAwayChangesNothing(t *testing.T) {
	h := newHouse(t)
	tenant, now := newTenant(), time.Now()
	old, newest := suspension(tenant, now), reinstatement(tenant, now.Add(time.Second))
	h.redis.Break()
	h.deliver(old) // recorded, not told
	h.redis.Heal()
	h.insist(newest)
	if got := h.insist(old); got.Outcome != "done" || h.shown(tenant) {
		t.Errorf("%+v, shown as suspended %v", got, h.shown(tenant))
	}
}

func TestARedisThatForgotEverythingIsToldAgain(t *testing.T) {
	h := newHouse(t)
	tenant, other, now := newTenant(), newTenant(), time.Now()
	h.done(suspension(tenant, now))
	h.done(suspension(other, now))
	for _, script := range []bool{false, true} {
		h.rdb.FlushAll(t.Context())
		if script {
			h.rdb.ScriptFlush(t.Context())
		}
		if !h.shown(tenant) || !h.shown(other) {
			t.Error("forgotten with Redis")
		}
	}
	h.rdb.FlushAll(t.Context())
	h.done(reinstatement(tenant, now.Add(time.Second)))
	if h.shown(tenant) || !h.shown(other) {
		t.Error("not what the record says")
	}
}

func TestWithoutPostgresNothingHappens(t *testing.T) {
	url, proxy := pgtest.Behind(t)
	h := newHouseOn(t, url)
	tenant := newTenant()
	h.keep("page", cache.Tenant(tenant))
	e := suspension(tenant, time.Now())
	proxy.Break()
	if got := h.deliver(e); got.Status != 503 || h.state("page") != cache.Hit {
		t.Errorf("%+v, page %s", got, h.state("page"))
	}
	if got := h.post("tenant-suspended", "nonsense"); got.Status != 503 {
		t.Errorf("what cannot be read is acknowledged and lost: %+v", got)
	}
	proxy.Heal()
	if got := h.insist(e); got.Outcome != "done" || got.Removed != 1 || !h.shown(tenant) {
		t.Errorf("%+v", got)
	}
	if got := h.post("tenant-suspended", "nonsense"); got.Outcome != "parked" || h.parked() != 1 {
		t.Errorf("%+v", got)
	}
}

func TestManyDeliveriesOfOneEventHaveOneEffect(t *testing.T) {
	h := newHouse(t)
	tenant, now := newTenant(), time.Now()
	h.keep("page", cache.Tenant(tenant))
	e := suspension(tenant, now)
	var all errgroup.Group
	for range 30 {
		all.Go(func() error { h.insist(e); return nil })
	}
	_ = all.Wait()
	if n := read[int](h, `SELECT count(*) FROM bff_consumer.inbox`); n != 1 || !h.processed(e) || !h.shown(tenant) || h.state("page") != cache.Miss {
		t.Errorf("%d rows, processed %v, shown %v", n, h.processed(e), h.shown(tenant))
	}
}

func TestAPushThatBreaksOffIsDeliveredAgain(t *testing.T) {
	h := newHouse(t)
	body := theme(newTenant()).push("1")
	r := httptest.NewRequest("POST", "/internal/events/theme-published", io.MultiReader(strings.NewReader(body[:90]), iotest.ErrReader(io.ErrUnexpectedEOF)))
	w := httptest.NewRecorder()
	h.mux.ServeHTTP(w, r)
	if w.Code != 400 || h.parked() != 0 {
		t.Errorf("%d, %d parked", w.Code, h.parked())
	}
}

// TestAFillThatBeganBeforeTheEventIsNotStored holds a fill open across each event that changes what it would say.
func TestAFillThatBeganBeforeTheEventIsNotStored(t *testing.T) {
	h := newHouse(t)
	tenant, property, now := newTenant(), newProperty(), time.Now()
	for name, c := range map[string]struct {
		tag string
		e   told
	}{
		"theme": {cache.Tenant(tenant), theme(tenant)}, "suspended": {cache.Tenant(tenant), suspension(tenant, now)},
		"reinstated": {cache.Tenant(tenant), reinstatement(tenant, now.Add(time.Hour))}, "property": {cache.Property(property), listing(property, cell)},
		"area": {cache.Cell(parent(t, 6)), listing(property, cell)}, "anywhere": {cache.Anywhere, listing(property, cell)},
	} {
		begun, ended, filled := make(chan struct{}), make(chan struct{}), make(chan struct{})
		recipe := filling(c.tag)
		fill := recipe.Fill
		recipe.Fill = func(ctx context.Context) (cache.Filled, error) {
			close(begun)
			<-ended
			return fill(ctx)
		}
		go func() {
			defer close(filled)
			_, _, _ = h.parts.cache.Do(context.Background(), keys.Key("cache", "test", name), nil, recipe)
		}()
		<-begun
		h.done(c.e)
		close(ended)
		<-filled
		if h.state(name) != cache.Miss {
			t.Errorf("%s: the old answer was put back", name)
		}
	}
}
