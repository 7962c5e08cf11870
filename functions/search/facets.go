package search

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Facets answers GET /facets: a shared answer, which knows nothing of the guest and may be stored at
// the edge.
type Facets struct {
	guests    *guest.Controller
	keys      redisclient.Keys
	cache     *cache.Cache
	upstreams *upstream.Upstreams
}

// NewFacets makes the handler.
func NewFacets(door *guest.Controller, keys redisclient.Keys, cache *cache.Cache, up *upstream.Upstreams) *Facets {
	return &Facets{door, keys, cache, up}
}

const facetsTTL = time.Hour

// Serve answers the values one can filter by in a country, or in a region of it.
func (h *Facets) Serve(w http.ResponseWriter, r *http.Request) error {
	in, err := web.ReadSharedQuery(r, "country", "region")
	if err != nil {
		return err
	}
	var f problem.FieldErrors
	country := strings.ToUpper(in.Get("country"))
	switch {
	case country == "":
		f.Add("country", "required", "Say which country, by its ISO 3166-1 alpha-2 code.")
	case len(country) != 2 || strings.Trim(country, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
		f.Add("country", "malformed", "Must be an ISO 3166-1 alpha-2 code.")
	}
	region := parsePlaceName(&f, "region", in.Get("region"))
	if len(f) > 0 {
		return problem.Invalid(f...)
	}
	// The key ends with the locale (docs/spec/keys.md#cache-entries): labels of facets are in the guest's
	// language, and a response in one language must never be served for another.
	key := h.keys.Key("cache", "facets", country, redisclient.EscapePart(strings.ToLower(region)), string(in.Locale))
	ctx, look, err := h.guests.BeginAnonymous(w, r, key)
	if err != nil {
		return err
	}
	call := web.FromContext(ctx)
	done := call.Phase("find")
	entry, state, err := h.cache.GetOrLoad(ctx, key, look.Prefetched, cache.Loader{
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
