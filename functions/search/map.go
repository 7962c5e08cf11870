package search

import (
	"context"
	"net/http"
	"slices"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/admission"
	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const maxPins = 250

// Map answers POST /search/map.
type Map struct {
	finder *Finder
	guests *Guests
	asks   *asks
}

// NewMap makes the handler.
func NewMap(finder *Finder, guests *Guests) *Map {
	return &Map{finder, guests, newAsks(finder.now, readMap)}
}

type mapRequest struct {
	query
	SpotlightPropertyID string `json:"spotlightPropertyId"`
	Zoom                *int   `json:"zoom"`
}

func (in *mapRequest) check(f *problem.Faults) {
	if in.Geo.Mode != "bounding-box" && slices.Contains(modes, in.Geo.Mode) { // another has been refused already
		f.Add("geo.mode", "not-supported", "A map is searched by bounding-box.")
	}
	if in.Zoom != nil && (*in.Zoom < 0 || *in.Zoom > maxZoom) {
		f.Add("zoom", "out-of-range", "Must be from 0 to 22.")
		in.Zoom = nil
	}
	if s := in.SpotlightPropertyID; s != "" && !id.Valid(id.Property, s) {
		f.Add("spotlightPropertyId", "malformed", "Must be a property id.")
	}
}

func readMap(body []byte, now time.Time) (*ask, error) {
	in := mapRequest{query: unsaid()}
	if err := web.Parse(body, &in); err != nil {
		return nil, err
	}
	faults := in.query.check(now)
	in.check(&faults)
	if len(faults) > 0 {
		return nil, problem.Invalid(faults...)
	}
	return &ask{
		query:   in.normal(upstream.Map, in.Zoom, upstream.Page{Limit: maxPins}),
		filters: in.Filters.used(), spotlight: in.SpotlightPropertyID,
	}, nil
}

// Serve answers the pins of a map. The pins are one cache entry and the spotlighted rate another, so that
// moving from pin to pin asks pricing alone.
func (m *Map) Serve(w http.ResponseWriter, r *http.Request) error {
	var a *ask
	if err := web.Body(r, m.asks.keep(&a)); err != nil {
		return err
	}
	ctx, guest, err := m.guests.door.Admit(w, r, func(tag locale.Tag, c money.Currency) []string {
		hash := a.hash(tag, c)
		if a.spotlight == "" {
			return []string{m.finder.mapKey(hash)}
		}
		return []string{m.finder.mapKey(hash), m.finder.spotlightKey(hash, a.spotlight)}
	})
	if err != nil {
		return err
	}
	q := a.query
	q.Locale, q.Currency = guest.Locale, guest.Currency
	hash := a.hash(q.Locale, q.Currency)
	key := m.finder.mapKey(hash)

	done := web.From(ctx).Phase("find")
	entry, state, err := m.finder.cache.Do(ctx, key, guest.Seen(key), m.finder.pinsOf(q, hash))
	done()
	if err != nil {
		return compose.Problem(err)
	}
	if entry, err = m.finder.shown(entry, guest.Suspended); err != nil {
		return err
	}
	if a.spotlight != "" {
		if entry, err = m.light(ctx, guest, q, hash, a.spotlight, entry); err != nil {
			return err
		}
	}
	return m.guests.answer(ctx, w, r, guest, search{
		query: q, hash: hash, filters: a.filters, entry: entry, state: state,
	})
}

// light puts the rate on the spotlighted pin, when that pin is on the map; a missing rate is named.
func (m *Map) light(ctx context.Context, guest *admission.Guest, q upstream.SearchQuery, hash, property string, e *cache.Entry) (*cache.Entry, error) {
	page, err := openPage(e)
	if err != nil {
		return nil, err
	}
	for n := range page.Items {
		item := &page.Items[n]
		if item.Property() != property {
			continue
		}
		rate, missing := m.finder.spotlight(ctx, guest, q, hash, upstream.PropertyRef{PropertyID: property, TenantID: item.Tenant})
		page.Degraded = append(page.Degraded, missing...)
		if rate != nil {
			item.Spotlight(*rate)
		}
		filled, err := pack(page, nil)
		return &filled.Entry, err
	}
	return e, nil
}

// pinsOf is the recipe of a map.
func (f *Finder) pinsOf(q upstream.SearchQuery, hash string) cache.Recipe {
	return cache.Recipe{
		TTL: pageTTL,
		Fill: func(ctx context.Context) (cache.Filled, error) {
			found, err := f.up.Search.Query(ctx, q)
			if err != nil {
				return cache.Filled{}, err
			}
			brands, brandless := f.parts.Brands(ctx, tenantsOf(found.Hits))
			page := &view.Page{Member: pins, ResultCount: found.ResultCount, Place: found.Place, Degraded: brandless}
			noteDegraded(ctx, page)
			for i := range found.Hits {
				hit := &found.Hits[i]
				item, err := view.NewItem(hit.TenantID, view.Pin(hit, brands[hit.TenantID]))
				if err != nil {
					return cache.Filled{}, err
				}
				page.Items = append(page.Items, item)
			}
			if page.Rest, err = mapRest(q, hash, found); err != nil {
				return cache.Filled{}, err
			}
			return pack(page, tags(page, q.Geo, found.Coverage))
		},
	}
}
