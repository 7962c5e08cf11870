package search

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Facets handles GET /facets. Safe for concurrent use.
type Facets struct {
	guests    *guest.Controller
	keys      redisclient.Keys
	cache     *cache.Cache
	upstreams *upstream.Upstreams
}

// NewFacets returns the handler of GET /facets. NewFacets does no I/O and cannot fail.
func NewFacets(guests *guest.Controller, keys redisclient.Keys, cache *cache.Cache, up *upstream.Upstreams) *Facets {
	return &Facets{guests, keys, cache, up}
}

const facetsTTL = time.Hour

// Serve answers GET /facets with the filter values of a country or of a region in it. The answer is
// shared: Serve reads no cookie, sets none, and the edge may store the answer. web.Budget bounds
// the request to 2.5 s. Invalid parameters are 422, without any round trip.
//
// A warm hit costs a Redis round trip of at most 100 ms, which writes rate-limit counters only, and
// no call to Postgres or search-aggregation. An entry is fresh for an hour (± 10 %); an unknown
// place is 404 for 30 s. A load costs a call of search-aggregation and two or more Redis round
// trips. A single flight among all processes loads; callers without a stored entry wait for the
// load until their deadline.
//
// Without Redis each process calls search-aggregation and stores nothing. Without Postgres the
// answer is the same. Without search-aggregation the stored entry is served up to 10 minutes past
// its freshness; else the answer is 503, or 504 when time ran out.
func (h *Facets) Serve(w http.ResponseWriter, r *http.Request) error {
	in, err := web.ReadSharedQuery(r, "country", "region")
	if err != nil {
		return err
	}
	var f problem.FieldErrors
	country := strings.ToUpper(in.Get("country"))
	switch {
	case country == "":
		f.Add("country", "required", "A country is required, as an ISO 3166-1 alpha-2 code.")
	case len(country) != 2 || strings.Trim(country, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
		f.Add("country", "malformed", "Must be an ISO 3166-1 alpha-2 code.")
	}
	region := parsePlaceName(&f, "region", in.Get("region"))
	if len(f) > 0 {
		return problem.Invalid(f...)
	}
	// The key ends with the locale (docs/spec/keys.md#cache-entries), because labels are
	// translated: a response in one language must never be served for another.
	key := h.keys.Key("cache", "facets", country, redisclient.EscapePart(strings.ToLower(region)), string(in.Locale))
	var prefetched *cache.Pending
	ctx, _, err := h.guests.BeginAnonymous(w, r, func(ctx context.Context, pipe redis.Pipeliner) {
		prefetched = h.cache.Enqueue(ctx, pipe, key)
	})
	if err != nil {
		return err
	}
	call := web.FromContext(ctx)
	done := call.Phase("find")
	entry, state, err := h.cache.GetOrLoad(ctx, key, prefetched, cache.Loader{
		TTL: facetsTTL,
		Load: func(ctx context.Context) (cache.Loaded, error) {
			found, err := h.upstreams.Search.Facets(ctx, country, region, in.Locale)
			if errors.Is(err, upstream.ErrNotFound) {
				entry, err := cache.NewEntry(http.StatusNotFound, nil, nil, nil)
				return cache.Loaded{Entry: entry}, err
			}
			if err != nil {
				return cache.Loaded{}, err
			}
			body, err := json.Marshal(found)
			if err != nil {
				return cache.Loaded{}, err
			}
			entry, err := cache.NewEntry(http.StatusOK, body, nil, nil)
			return cache.Loaded{Entry: entry}, err
		},
	})
	done()
	if err != nil {
		return compose.Problem(err)
	}
	call.AddLogField("cache", string(state))
	w.Header().Set("X-Cache", string(state))
	if entry.Status == http.StatusNotFound {
		return problem.New(problem.ResourceNotFound, "No hotels are listed there.", nil)
	}
	web.MarkShared(w, in.PreferencesInURL, state == cache.Stale)
	return entry.WriteShared(w, r)
}
