package search

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/geo"
)

// TestSearch_InvalidationBeatsConcurrentLoad holds up one upstream after it has read its truth, changes the truth
// and empties each tag that the events of the platform name, for lists and maps, made anew and made again.
func TestSearch_InvalidationBeatsConcurrentLoad(t *testing.T) {
	t.Parallel()
	city, err := geo.ParseCell("h3:842f2cdffffffff")
	if err != nil {
		t.Fatal(err)
	}
	changed := func(u *upstreams) { u.hits, u.price, u.colour = 2, 1, "#112233" }
	for _, c := range []struct{ path, holds, tag string }{
		{"/search", "search", cache.TenantTag(tenantID(1))}, {"/search", "search", cache.PropertyTag(propertyID(1))},
		{"/search", "search", cache.CellTag(city.String())}, {"/search", "theme", cache.TenantTag(tenantID(1))},
		{"/search", "pricing", cache.CellTag(city.String())}, {"/search/map", "search", cache.TenantTag(tenantID(1))},
	} {
		for kind, age := range map[string]time.Duration{"absent": 0, "stale": 2 * time.Minute} {
			if c.holds == "theme" && age > 0 {
				continue // the brands of a stale page are fresh, and theme-config is not asked
			}
			t.Run(fmt.Sprint(strings.TrimPrefix(c.path, "/"), "/", c.holds, "/", kind, "/", c.tag), func(t *testing.T) {
				h := newHarness(t)
				h.setFlags(samplingOff)
				body := h.requestBody("Kabul")
				if c.path == "/search/map" {
					body = h.requestBody("Kabul", `"mode":"city","city":"Kabul"`, `"mode":"bounding-box","boundingBox":{"swLat":34.3,"swLng":69,"neLat":34.7,"neLng":69.4}`)
				}
				if age > 0 {
					h.do("POST", c.path, body)
					h.Advance(age)
				}
				arrived, letGo := h.upstreams.Pause(c.holds)
				first := make(chan *response, 1)
				go func() { first <- h.do("POST", c.path, body) }()
				<-arrived
				h.upstreams.Update(func() { changed(h.upstreams) })
				if _, err := h.Deps.Cache.Invalidate(t.Context(), c.tag); err != nil {
					t.Fatal(err)
				}
				letGo()
				if a := <-first; a.StatusCode != 200 {
					t.Fatalf("got %d %s; want status 200", a.StatusCode, a.Text)
				}
				a := h.do("POST", c.path, body)
				if a.Header.Get("X-Cache") != "MISS" || len(a.body.Listings)+len(a.body.Pins) != 2 {
					t.Errorf("afterwards: %s %s", a.Header.Get("X-Cache"), a.Text)
				}
				if c.tag == cache.TenantTag(tenantID(1)) && c.path == "/search" && !strings.Contains(a.Text, "#112233") {
					t.Errorf("the old brand: %s", a.Text)
				}
			})
		}
	}
}

// TestSearchList_ShowsReinstatedTenantAtOnce holds the cached list against every turn of a tenant's standing: it keeps what
// a suspended tenant has, and shows it or not.
func TestSearchList_ShowsReinstatedTenantAtOnce(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.setFlags(samplingOff)
	for _, busted := range []bool{false, true} {
		if got := len(h.mustSearch(h.requestBody("Kabul")).body.Listings); got != 3 {
			t.Fatalf("%d listings", got)
		}
		h.Suspend(tenantID(1))
		if busted { // the list is made while the tenant is suspended
			if _, err := h.Deps.Cache.Invalidate(t.Context(), cache.TenantTag(tenantID(1))); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if a := h.mustSearch(h.requestBody("Kabul")); len(a.body.Listings) != 2 || strings.Contains(a.Text, tenantID(1)) {
				t.Errorf("suspended: %s", a.Text)
			}
		}
		h.Reinstate(tenantID(1))
		if a := h.mustSearch(h.requestBody("Kabul")); len(a.body.Listings) != 3 || a.Header.Get("X-Cache") != "HIT" {
			t.Errorf("reinstated: %s %s", a.Header.Get("X-Cache"), a.Text)
		}
	}
}
