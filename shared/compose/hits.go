package compose

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
)

const (
	hitTTL      = 5 * time.Minute
	hitsTimeout = 1_200 * time.Millisecond // for all hits of a response
)

// Hits returns the properties listed by search-aggregation, by property id, as in a search result
// but without rates, and the degraded part "search" if any property could not be fetched. An
// unlisted property is absent. Hits never fails, takes at most 1.2 s, and then returns the
// properties found so far, never a nil map. The caller may change the hits.
//
// Cost: 1 Redis round trip for all cached properties, and decoding each. A property not in the
// cache costs a lock in Redis (1 round trip), a call of search-aggregation, and 2 round trips to
// store the entry, up to 16 properties at a time; processes share such a load. A property is fresh
// for 5 minutes ±10 %. For another 10 minutes it is stale: a single caller loads the property anew,
// and all other callers, or all after a failure, get the stale property. An unlisted property is
// remembered for 30 s.
//
// Without Redis, Hits calls search-aggregation for every property, in the time that is left: until
// the breaker of the Redis client opens, Redis may use up much of the 1.2 s. A cancelled ctx gives
// no hits and the reason "unavailable", an expired ctx "timeout".
func (f *Fetcher) Hits(ctx context.Context, properties []string, l locale.Tag, c money.Currency) (map[string]*upstream.Hit, []view.Degraded) {
	ctx, cancel := context.WithTimeout(ctx, hitsTimeout)
	defer cancel()
	key := func(property string) string { return f.hitKey(property, l, c) }
	hits, err := gather(ctx, f, properties, key, func(ctx context.Context, property string, prefetched *cache.Pending) (*upstream.Hit, error) {
		return f.fetchHit(ctx, property, l, c, prefetched)
	})
	return hits, DegradedPart("search", err)
}

// fetchHit reads a property from the cache or loads the property from search-aggregation; nil if
// not listed.
func (f *Fetcher) fetchHit(ctx context.Context, property string, l locale.Tag, c money.Currency, prefetched *cache.Pending) (*upstream.Hit, error) {
	entry, _, err := f.cache.GetOrLoad(ctx, f.hitKey(property, l, c), prefetched, cache.Loader{
		TTL: hitTTL,
		Load: func(ctx context.Context) (cache.Loaded, error) {
			found, err := f.upstreams.Search.Hotel(ctx, property, l, c)
			if errors.Is(err, upstream.ErrNotFound) {
				return notFoundEntry(cache.PropertyTag(property))
			}
			if err != nil {
				return cache.Loaded{}, err
			}
			return encodeEntry(found.Hit, cache.TenantTag(found.Hit.TenantID), cache.PropertyTag(property))
		},
	})
	if err != nil || entry.Status == http.StatusNotFound {
		return nil, err
	}
	var hit upstream.Hit
	if err := decodeEntry(entry, &hit); err != nil {
		return nil, fmt.Errorf("compose: cached hit: %w", err)
	}
	return &hit, nil
}

func (f *Fetcher) hitKey(property string, l locale.Tag, c money.Currency) string {
	return f.keys.Key("cache", "listing", property, string(l), string(c))
}
