package search

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const maxPins = 250

// Map handles POST /search/map. Safe for concurrent use.
type Map struct {
	finder    *Finder
	responder *Responder
	queries   *queryCache
}

// NewMap returns the handler of POST /search/map with an empty cache of parsed bodies: at most
// 2,048 bodies of at most 1 KiB, in memory. NewMap does no I/O and cannot fail.
func NewMap(finder *Finder, responder *Responder) *Map {
	return &Map{finder, responder, newQueryCache(finder.now, parseMap)}
}

type mapRequest struct {
	query
	SpotlightPropertyID string `json:"spotlightPropertyId"`
	Zoom                *int   `json:"zoom"`
}

// check adds faults of the members that only a map has. An invalid zoom becomes nil.
func (in *mapRequest) check(f *problem.FieldErrors) {
	// area.check refused unknown modes
	if in.Geo.Mode != "bounding-box" && slices.Contains(geoModes, in.Geo.Mode) {
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

// parseMap is parseList for a body of POST /search/map. A map has no page; maxPins bounds it.
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

// Serve answers POST /search/map with at most 250 pins and the rate of the spotlighted pin. The
// answer is personal (private, no-store). web.Budget bounds the request to 2.5 s.
//
// The pins are one cache entry and the spotlighted rate is another, so a guest who moves from pin
// to pin causes calls to pricing only. One Redis round trip, of at most 100 ms, reads both entries.
// A load costs a call of search-aggregation, then theme-config (750 ms), and three or more Redis
// round trips; the conditions of a second round trip and of a write to Postgres, and the failures
// of Redis, Postgres and search-aggregation (503, or 504 when time ran out) are those of
// List.Serve. A warm hit with a spotlighted pin also decompresses, decodes and compresses the page.
//
// Without pricing the spotlighted pin has no rate; without theme-config pins have neutral brands.
// Both are named in "degraded". A spotlighted property that is not on the map is ignored.
func (m *Map) Serve(w http.ResponseWriter, r *http.Request) error {
	var parsed *parsedQuery
	if err := web.WithJSONBody(r, m.queries.decodeInto(&parsed)); err != nil {
		return m.responder.guests.CountRejected(w, r, err)
	}
	prefetched := map[string]*cache.Pending{}
	ctx, guest, err := m.responder.guests.Begin(w, r, func(ctx context.Context, pipe redis.Pipeliner, request *session.Request) {
		hash := parsed.hash(m.responder.sessions.PredictPreferences(request))
		keys := []string{m.finder.mapKey(hash)}
		if parsed.spotlightPropertyID != "" {
			keys = append(keys, m.finder.spotlightKey(hash, parsed.spotlightPropertyID))
		}
		for _, key := range keys {
			prefetched[key] = m.finder.cache.Enqueue(ctx, pipe, key)
		}
	})
	if err != nil {
		return err
	}
	q := parsed.query
	q.Locale, q.Currency = guest.Locale, guest.Currency
	hash := parsed.hash(q.Locale, q.Currency)
	key := m.finder.mapKey(hash)

	done := web.FromContext(ctx).Phase("find")
	entry, state, err := m.finder.cache.GetOrLoad(ctx, key, prefetched[key], m.finder.mapLoader(q, hash))
	done()
	if err != nil {
		return compose.Problem(err)
	}
	if entry, err = m.finder.prepareForResponse(entry, guest.Suspended); err != nil {
		return err
	}
	if parsed.spotlightPropertyID != "" {
		if entry, err = m.addSpotlightRate(ctx, prefetched, q, hash, parsed.spotlightPropertyID, entry); err != nil {
			return err
		}
	}
	return m.responder.respond(ctx, w, r, guest, result{
		query: q, hash: hash, filters: parsed.filters, entry: entry, state: state,
	})
}

// addSpotlightRate returns the entry with the rate of the spotlighted pin. It returns e unchanged
// when the property is not on the map. A rate that pricing did not give is named in "degraded"; a
// sold-out property has no rate and is not named. The only errors come from decoding and encoding
// the page.
func (m *Map) addSpotlightRate(ctx context.Context, prefetched map[string]*cache.Pending, q upstream.SearchQuery, hash, property string, e *cache.Entry) (*cache.Entry, error) {
	page, err := decodePage(e)
	if err != nil {
		return nil, err
	}
	for n := range page.Items {
		item := &page.Items[n]
		if item.PropertyID() != property {
			continue
		}
		rate, missing := m.finder.spotlightRate(ctx, prefetched, q, hash, upstream.PropertyRef{PropertyID: property, TenantID: item.TenantID})
		page.Degraded = append(page.Degraded, missing...)
		if rate != nil {
			item.SetSpotlightRate(*rate)
		}
		loaded, err := pack(page, nil)
		return &loaded.Entry, err
	}
	return e, nil
}

// mapLoader loads the pins of a map: one call to search-aggregation, then brands within 750 ms. The
// entry is fresh for 60 s, or for 15 s when brands are missing. It returns the errors of
// search-aggregation and of encoding.
func (f *Finder) mapLoader(q upstream.SearchQuery, hash string) cache.Loader {
	return cache.Loader{
		TTL: pageTTL,
		Load: func(ctx context.Context) (cache.Loaded, error) {
			found, err := f.upstreams.Search.Query(ctx, q)
			if err != nil {
				return cache.Loaded{}, err
			}
			brands, parts, missingBrands := f.parts.Brands(ctx, distinctTenants(found.Hits))
			page := &view.Page{Member: pinsMember, ResultCount: found.ResultCount, Place: found.Place, Degraded: missingBrands}
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
