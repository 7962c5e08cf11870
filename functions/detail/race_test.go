package detail

import (
	"context"
	"fmt"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
)

func TestDetail_ConcurrentMissesShareOneLoad(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	other := h.newInstance()
	arrived, release := h.upstreams.Pause("property")
	answers := make(chan *response, 40)
	for n := range 40 {
		from := h
		if n%2 == 0 {
			from = other
		}
		go func() { answers <- from.get(detailURL) }()
	}
	<-arrived
	release()
	for range 40 {
		if a := <-answers; a.StatusCode != 200 || a.Property.PropertyID != kabulPropertyID {
			t.Errorf("got %d %s; want status 200, Property.PropertyID = %v", a.StatusCode, a.Text, kabulPropertyID)
		}
	}
	if got := fmt.Sprint(h.upstreams.Calls("property"), h.upstreams.Calls("hotel"), h.upstreams.Calls("pricing")); got != "1 1 1" {
		t.Errorf("calls to property, search and pricing: got %s; want 1 1 1", got)
	}
}

// The test pauses an upstream after it has read its data, changes the data, and invalidates the
// property: for the page and the availability, without an entry and with a stale one. The subtests
// share stores; each begins with an empty Redis and a new instance.
func TestDetail_InvalidationBeatsConcurrentLoad(t *testing.T) {
	t.Parallel()
	days := hotelPath + "/availability?from=2026-12-01&to=2026-12-02"
	base := newHarness(t)
	for _, c := range []struct{ path, pauses string }{{detailURL, "property"}, {detailURL, "search"}, {detailURL, "pricing"}, {days, "search"}, {days, "property"}} {
		for kind, age := range map[string]time.Duration{"absent": 0, "stale": 6 * time.Minute} {
			t.Run(fmt.Sprintf("%s/%s/%s", c.path[len(hotelPath):len(hotelPath)+3], c.pauses, kind), func(t *testing.T) {
				h := base.newInstance()
				h.FlushRedis()
				h.upstreams.Update(func() { h.upstreams.name, h.upstreams.price = "Hotel One", 450000 })
				if age > 0 {
					h.mustGet(c.path)
					h.Advance(age)
				}
				arrived, release := h.upstreams.Pause(c.pauses)
				first := make(chan *response, 1)
				go func() { first <- h.get(c.path) }()
				<-arrived
				h.upstreams.Update(func() { h.upstreams.name, h.upstreams.price = "Hotel New", 1 })
				if _, err := h.Deps.Cache.Invalidate(t.Context(), cache.PropertyTag(kabulPropertyID)); err != nil {
					t.Fatal(err)
				}
				release()
				if a := <-first; a.StatusCode != 200 {
					t.Fatalf("got %d %s; want status 200", a.StatusCode, a.Text)
				}
				a := h.mustGet(c.path)
				if a.cacheState() != "MISS" || c.path == detailURL && a.Property.Name.Default != "Hotel New" || c.path == days && a.Days[0].CheapestMinor != "1" {
					t.Errorf("after the invalidation: got %s %s; want MISS with the new data", a.cacheState(), a.Text)
				}
			})
		}
	}
}

func TestDetail_InvalidatedByOwnAndSimilarTags(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for name, tag := range map[string]string{
		"own tenant":       cache.TenantTag(tenantID(1)),
		"own property":     cache.PropertyTag(kabulPropertyID),
		"similar tenant":   cache.TenantTag(tenantID(4)),
		"similar property": cache.PropertyTag(propertyID(2)),
	} {
		h.mustGet(detailURL)
		if _, err := h.Deps.Cache.Invalidate(context.Background(), tag); err != nil {
			t.Fatal(err)
		}
		if a := h.mustGet(detailURL); a.cacheState() != "MISS" {
			t.Errorf("invalidated by %s: got %s; want MISS", name, a.cacheState())
		}
	}
	h.mustGet(detailURL)
	if _, err := h.Deps.Cache.Invalidate(context.Background(), cache.TenantTag("tnt_0000000000000000000000000Z")); err != nil {
		t.Fatal(err)
	}
	if a := h.mustGet(detailURL); a.cacheState() != "HIT" {
		t.Errorf("invalidated by another tenant: got %s; want HIT", a.cacheState())
	}
}

func TestDetail_InvalidationClearsNegativeEntry(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.upstreams.NotFound("property")
	if a := h.get(detailURL); a.StatusCode != 404 {
		t.Fatalf("got %d; want status 404", a.StatusCode)
	}
	h.upstreams.Recover("property")
	if _, err := h.Deps.Cache.Invalidate(t.Context(), cache.PropertyTag(kabulPropertyID)); err != nil {
		t.Fatal(err)
	}
	h.mustGet(detailURL)
}
