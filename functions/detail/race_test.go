package detail

import (
	"context"
	"fmt"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
)

func TestManyGuestsOfAColdPageAreOneFanOut(t *testing.T) {
	h := newHouse(t)
	other := h.beside()
	arrived, letGo := h.up.Hold("property")
	answers := make(chan *answer, 40)
	for n := range 40 {
		from := h
		if n%2 == 0 {
			from = other
		}
		go func() { answers <- from.get(inURL) }()
	}
	<-arrived
	letGo()
	for range 40 {
		if a := <-answers; a.StatusCode != 200 || a.Property.PropertyID != kabul {
			t.Errorf("%d %s", a.StatusCode, a.Text)
		}
	}
	if got := fmt.Sprint(h.up.Calls("property"), h.up.Calls("hotel"), h.up.Calls("pricing")); got != "1 1 1" {
		t.Errorf("calls to property, search and pricing: %s", got)
	}
}

// TestAnInvalidationBeatsAPageInTheMaking holds up one upstream after it has read its truth, changes the truth and
// empties the property's entries, for the page and the availability, made anew and made again.
func TestAnInvalidationBeatsAPageInTheMaking(t *testing.T) {
	days := address + "/availability?from=2026-12-01&to=2026-12-02"
	for _, c := range []struct{ path, holds string }{{inURL, "property"}, {inURL, "search"}, {inURL, "pricing"}, {days, "search"}, {days, "property"}} {
		for kind, age := range map[string]time.Duration{"absent": 0, "stale": 6 * time.Minute} {
			t.Run(fmt.Sprintf("%s/%s/%s", c.path[len(address):len(address)+3], c.holds, kind), func(t *testing.T) {
				h := newHouse(t)
				if age > 0 {
					h.ok(c.path)
					h.Advance(age)
				}
				arrived, letGo := h.up.Hold(c.holds)
				first := make(chan *answer, 1)
				go func() { first <- h.get(c.path) }()
				<-arrived
				h.up.Change(func() { h.up.name, h.up.price = "Hotel New", 1 })
				if _, err := h.Parts.Cache.Bust(t.Context(), cache.Property(kabul)); err != nil {
					t.Fatal(err)
				}
				letGo()
				if a := <-first; a.StatusCode != 200 {
					t.Fatalf("%d %s", a.StatusCode, a.Text)
				}
				a := h.ok(c.path)
				if a.state() != "MISS" || c.path == inURL && a.Property.Name.Default != "Hotel New" || c.path == days && a.Days[0].CheapestMinor != "1" {
					t.Errorf("afterwards: %s %s", a.state(), a.Text)
				}
			})
		}
	}
}

func TestAChangedBrandOrNeighbourEmptiesThePage(t *testing.T) {
	h := newHouse(t)
	for name, tag := range map[string]string{
		"own tenant":       cache.Tenant(tenantOf(1)),
		"own property":     cache.Property(kabul),
		"similar tenant":   cache.Tenant(tenantOf(4)),
		"similar property": cache.Property(propertyID(2)),
	} {
		h.ok(inURL)
		if _, err := h.Parts.Cache.Bust(context.Background(), tag); err != nil {
			t.Fatal(err)
		}
		if a := h.ok(inURL); a.state() != "MISS" {
			t.Errorf("%s changed: %s", name, a.state())
		}
	}
	h.ok(inURL)
	if _, err := h.Parts.Cache.Bust(context.Background(), cache.Tenant("tnt_0000000000000000000000000Z")); err != nil {
		t.Fatal(err)
	}
	if a := h.ok(inURL); a.state() != "HIT" {
		t.Errorf("a stranger changed: %s", a.state())
	}
}

func TestUnknownHotelsAreForgottenWhenTheyAreListed(t *testing.T) {
	h := newHouse(t)
	h.up.NotKnow("property")
	if a := h.get(inURL); a.StatusCode != 404 {
		t.Fatalf("%d", a.StatusCode)
	}
	h.up.Recover("property")
	if _, err := h.Parts.Cache.Bust(t.Context(), cache.Property(kabul)); err != nil {
		t.Fatal(err)
	}
	h.ok(inURL)
}
