package search

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
)

// The test pauses an upstream after it has read its data, changes the data, and invalidates each
// tag that the platform's events name: for lists and maps, without an entry and with a stale one.
// The subtests share stores; each begins with an empty Redis and a new instance.
func TestSearch_InvalidationBeatsConcurrentLoad(t *testing.T) {
	t.Parallel()
	city, err := geo.ParseCell("h3:842f2cdffffffff")
	if err != nil {
		t.Fatal(err)
	}
	base := newHarnessWithFlags(t, samplingOff)
	for _, c := range []struct{ path, pauses, tag string }{
		{"/search", "search", cache.TenantTag(tenantID(1))}, {"/search", "search", cache.PropertyTag(propertyID(1))},
		{"/search", "search", cache.CellTag(city.String())}, {"/search", "theme", cache.TenantTag(tenantID(1))},
		{"/search", "pricing", cache.CellTag(city.String())}, {"/search/map", "search", cache.TenantTag(tenantID(1))},
	} {
		for kind, age := range map[string]time.Duration{"absent": 0, "stale": 2 * time.Minute} {
			if c.pauses == "theme" && age > 0 {
				continue // the brands of a stale page are fresh, so theme-config is not called
			}
			t.Run(fmt.Sprint(strings.TrimPrefix(c.path, "/"), "/", c.pauses, "/", kind, "/", c.tag), func(t *testing.T) {
				h := base.newInstance()
				h.FlushRedis()
				h.upstreams.Update(func() { h.upstreams.hits, h.upstreams.price, h.upstreams.colour = 3, 450000, "#aabbcc" })
				body := h.requestBody("Kabul")
				if c.path == "/search/map" {
					body = h.requestBody("Kabul", `"mode":"city","city":"Kabul"`, `"mode":"bounding-box","boundingBox":{"swLat":34.3,"swLng":69,"neLat":34.7,"neLng":69.4}`)
				}
				if age > 0 {
					h.do("POST", c.path, body)
					h.Advance(age)
				}
				arrived, release := h.upstreams.Pause(c.pauses)
				first := make(chan *response, 1)
				go func() { first <- h.do("POST", c.path, body) }()
				<-arrived
				h.upstreams.Update(func() { h.upstreams.hits, h.upstreams.price, h.upstreams.colour = 2, 1, "#112233" })
				if _, err := h.Deps.Cache.Invalidate(t.Context(), c.tag); err != nil {
					t.Fatal(err)
				}
				release()
				if a := <-first; a.StatusCode != 200 {
					t.Fatalf("got %d %s; want status 200", a.StatusCode, a.Text)
				}
				a := h.do("POST", c.path, body)
				if a.Header.Get("X-Cache") != "MISS" || len(a.body.Listings)+len(a.body.Pins) != 2 {
					t.Errorf("after the invalidation: got %s %s; want MISS with 2 hotels", a.Header.Get("X-Cache"), a.Text)
				}
				if c.tag == cache.TenantTag(tenantID(1)) && c.path == "/search" && !strings.Contains(a.Text, "#112233") {
					t.Errorf("got %s; want the new brand", a.Text)
				}
			})
		}
	}
}

// A cached list keeps the cards of a suspended tenant, and each answer filters them by the
// suspensions of that moment. The second case loads the list while the tenant is suspended.
func TestSearchList_ShowsReinstatedTenantAtOnce(t *testing.T) {
	t.Parallel()
	h := newHarnessWithFlags(t, samplingOff)
	for _, invalidate := range []bool{false, true} {
		if got := len(h.mustSearch(h.requestBody("Kabul")).body.Listings); got != 3 {
			t.Fatalf("got %d listings; want 3", got)
		}
		h.Suspend(tenantID(1))
		if invalidate {
			if _, err := h.Deps.Cache.Invalidate(t.Context(), cache.TenantTag(tenantID(1))); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if a := h.mustSearch(h.requestBody("Kabul")); len(a.body.Listings) != 2 || strings.Contains(a.Text, tenantID(1)) {
				t.Errorf("suspended: got %s; want 2 listings", a.Text)
			}
		}
		h.Reinstate(tenantID(1))
		if a := h.mustSearch(h.requestBody("Kabul")); len(a.body.Listings) != 3 || a.Header.Get("X-Cache") != "HIT" {
			t.Errorf("reinstated: got %s %s; want HIT with 3 listings", a.Header.Get("X-Cache"), a.Text)
		}
	}
}
