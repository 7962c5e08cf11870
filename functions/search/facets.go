package search

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/admission"
	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Facets answers GET /facets: a shared answer, which knows nothing of the guest and may be stored at
// the edge.
type Facets struct {
	door  *admission.Door
	keys  keyspace.Keys
	cache *cache.Cache
	up    *upstream.Upstreams
}

// NewFacets makes the handler.
func NewFacets(door *admission.Door, keys keyspace.Keys, cache *cache.Cache, up *upstream.Upstreams) *Facets {
	return &Facets{door, keys, cache, up}
}

const facetsTTL = time.Hour

// Serve answers the values one can filter by in a country, or in a region of it.
func (h *Facets) Serve(w http.ResponseWriter, r *http.Request) error {
	in, err := web.ReadSharedQuery(r, "country", "region")
	if err != nil {
		return err
	}
	var f problem.Faults
	country := strings.ToUpper(in.Get("country"))
	switch {
	case country == "":
		f.Add("country", "required", "Say which country, by its ISO 3166-1 alpha-2 code.")
	case len(country) != 2 || strings.Trim(country, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "":
		f.Add("country", "malformed", "Must be an ISO 3166-1 alpha-2 code.")
	}
	region := place(&f, "region", in.Get("region"))
	if len(f) > 0 {
		return problem.Invalid(f...)
	}
	// The key ends with the locale (docs/spec/keys.md#cache-entries): labels of facets are in the guest's
	// language, and a response in one language must never be served for another.
	key := h.keys.Key("cache", "facets", country, keyspace.Part(strings.ToLower(region)), string(in.Locale))
	ctx, look, err := h.door.Look(w, r, key)
	if err != nil {
		return err
	}
	call := web.From(ctx)
	done := call.Phase("find")
	entry, state, err := h.cache.Do(ctx, key, look.Seen, cache.Recipe{
		TTL: facetsTTL,
		Fill: func(ctx context.Context) (cache.Filled, error) {
			found, err := h.up.Search.Facets(ctx, country, region, in.Locale)
			if errors.Is(err, upstream.ErrNotFound) {
				entry, err := cache.Pack(http.StatusNotFound, nil, nil, nil)
				return cache.Filled{Entry: entry}, err
			}
			if err != nil {
				return cache.Filled{}, err
			}
			body, err := json.Marshal(found)
			if err != nil {
				return cache.Filled{}, err
			}
			entry, err := cache.Pack(http.StatusOK, body, nil, nil)
			return cache.Filled{Entry: entry}, err
		},
	})
	done()
	if err != nil {
		return compose.Problem(err)
	}
	call.Note("cache", string(state))
	w.Header().Set("X-Cache", string(state))
	if entry.Status == http.StatusNotFound {
		return problem.New(problem.ResourceNotFound, "No hotels are listed there.", nil)
	}
	web.Shared(w, in.InURL, state == cache.Stale)
	return entry.WriteShared(w, r)
}
