package search

import (
	"context"
	"net/http"
	"slices"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
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
	finder    *Finder
	responder *Responder
	queries   *queryCache
}

// NewMap makes the handler.
func NewMap(finder *Finder, guests *Responder) *Map {
	return &Map{finder, guests, newQueryCache(finder.now, parseMap)}
}

type mapRequest struct {
	query
	SpotlightPropertyID string `json:"spotlightPropertyId"`
	Zoom                *int   `json:"zoom"`
}

func (in *mapRequest) check(f *problem.FieldErrors) {
	if in.Geo.Mode != "bounding-box" && slices.Contains(geoModes, in.Geo.Mode) { // another has been refused already
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

func parseMap(body []byte, now time.Time) (*parsedQuery, error) {
	in := mapRequest{query: defaultQuery()}
	if err := web.DecodeBytes(body, &in); err != nil {
		return nil, err
	}
	faults := in.query.check(now)
	in.check(&faults)
	if len(faults) > 0 {
		return nil, problem.Invalid(faults...)
	}
	return &parsedQuery{
		query:   in.normalize(upstream.Map, in.Zoom, upstream.Page{Limit: maxPins}),
		filters: in.Filters.telemetryKeys(), spotlightPropertyID: in.SpotlightPropertyID,
	}, nil
}

// Serve answers the pins of a map. The pins are one cache entry and the spotlighted rate another, so that
// moving from pin to pin asks pricing alone.
func (m *Map) Serve(w http.ResponseWriter, r *http.Request) error {
	var a *parsedQuery
	if err := web.WithJSONBody(r, m.queries.decodeInto(&a)); err != nil {
		return err
	}
	ctx, guest, err := m.responder.guests.Begin(w, r, func(tag locale.Tag, c money.Currency) []string {
		hash := a.hash(tag, c)
		if a.spotlightPropertyID == "" {
			return []string{m.finder.mapKey(hash)}
		}
		return []string{m.finder.mapKey(hash), m.finder.spotlightKey(hash, a.spotlightPropertyID)}
	})
	if err != nil {
		return err
	}
	q := a.query
	q.Locale, q.Currency = guest.Locale, guest.Currency
	hash := a.hash(q.Locale, q.Currency)
	key := m.finder.mapKey(hash)

	done := web.FromContext(ctx).Phase("find")
	entry, state, err := m.finder.cache.GetOrLoad(ctx, key, guest.Prefetched(key), m.finder.mapLoader(q, hash))
	done()
	if err != nil {
		return compose.Problem(err)
	}
	if entry, err = m.finder.prepareForResponse(entry, guest.Suspended); err != nil {
		return err
	}
	if a.spotlightPropertyID != "" {
		if entry, err = m.addSpotlightRate(ctx, guest, q, hash, a.spotlightPropertyID, entry); err != nil {
			return err
		}
	}
	return m.responder.respond(ctx, w, r, guest, result{
		query: q, hash: hash, filters: a.filters, entry: entry, state: state,
	})
}

// addSpotlightRate puts the rate on the spotlighted pin, when that pin is on the map; a missing rate is named.
func (m *Map) addSpotlightRate(ctx context.Context, guest *guest.Guest, q upstream.SearchQuery, hash, property string, e *cache.Entry) (*cache.Entry, error) {
	page, err := decodePage(e)
	if err != nil {
		return nil, err
	}
	for n := range page.Items {
		item := &page.Items[n]
		if item.PropertyID() != property {
			continue
		}
		rate, missing := m.finder.spotlightRate(ctx, guest, q, hash, upstream.PropertyRef{PropertyID: property, TenantID: item.TenantID})
		page.Degraded = append(page.Degraded, missing...)
		if rate != nil {
			item.Spotlight(*rate)
		}
		filled, err := pack(page, nil)
		return &filled.Entry, err
	}
	return e, nil
}

// mapLoader is the recipe of a map.
func (f *Finder) mapLoader(q upstream.SearchQuery, hash string) cache.Loader {
	return cache.Loader{
		TTL: pageTTL,
		Load: func(ctx context.Context) (cache.Loaded, error) {
			found, err := f.upstreams.Search.Query(ctx, q)
			if err != nil {
				return cache.Loaded{}, err
			}
			brands, parts, brandless := f.parts.Brands(ctx, distinctTenants(found.Hits))
			page := &view.Page{Member: pinsMember, ResultCount: found.ResultCount, Place: found.Place, Degraded: brandless}
			logDegraded(ctx, page)
			for i := range found.Hits {
				hit := &found.Hits[i]
				item, err := view.NewItem(hit.TenantID, view.NewPin(hit, brands[hit.TenantID]))
				if err != nil {
					return cache.Loaded{}, err
				}
				page.Items = append(page.Items, item)
			}
			if page.Extra, err = mapMembers(q, hash, found); err != nil {
				return cache.Loaded{}, err
			}
			filled, err := pack(page, cacheTags(page, q.Geo, found.Coverage))
			filled.DependsOn = parts
			return filled, err
		},
	}
}
