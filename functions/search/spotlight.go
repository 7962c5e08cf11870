package search

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
)

const spotlightTTL = 50 * time.Second // with the jitter of 10 % below the 60 s of a rate

// cachedRate is the body of a spotlight cache entry. Rate is nil when the property is sold out.
type cachedRate struct {
	Rate  *view.RateSnapshot `json:"rate"`
	Until time.Time          `json:"until"`
}

// spotlightRate returns the rate of one pin, nil for a sold-out property, from the cache or from
// pricing within 800 ms. A pin has no field to mark its rate stale, so an expired rate is not
// shown: the second result names pricing as degraded, as it does when pricing fails.
func (f *Finder) spotlightRate(ctx context.Context, prefetched map[string]*cache.Pending, q upstream.SearchQuery, hash string, property upstream.PropertyRef) (*view.RateSnapshot, []view.Degraded) {
	key := f.spotlightKey(hash, property.PropertyID)
	entry, _, err := f.cache.GetOrLoad(ctx, key, prefetched[key], cache.Loader{
		TTL: spotlightTTL,
		Load: func(ctx context.Context) (cache.Loaded, error) {
			quotes, err := f.upstreams.Pricing.Preview(ctx, quoteRequest(q, []upstream.PropertyRef{property}))
			if err != nil {
				return cache.Loaded{}, err
			}
			var cached cachedRate
			if quote, ok := quotes[property.PropertyID]; ok {
				rate, until := view.NewRateSnapshot(&quote, f.now())
				cached = cachedRate{&rate, until}
			}
			body, err := json.Marshal(cached)
			if err != nil {
				return cache.Loaded{}, fmt.Errorf("search: encode rate: %w", err)
			}
			entry, err := cache.NewEntry(http.StatusOK, body, nil, nil)
			return cache.Loaded{Entry: entry, Tags: []string{cache.TenantTag(property.TenantID), cache.PropertyTag(property.PropertyID)}}, err
		},
	})
	var cached cachedRate
	if err == nil {
		cached, err = decodeCachedRate(entry)
	}
	switch {
	case err != nil:
		return nil, compose.DegradedPart("pricing", err)
	case cached.Rate != nil && f.now().After(cached.Until):
		return nil, []view.Degraded{{Part: "pricing", Reason: string(upstream.Unavailable)}}
	default:
		return cached.Rate, nil
	}
}

func decodeCachedRate(e *cache.Entry) (rate cachedRate, err error) {
	body, err := e.Body()
	if err != nil {
		return cachedRate{}, err
	}
	if err := json.Unmarshal(body, &rate); err != nil {
		return cachedRate{}, fmt.Errorf("search: cached rate: %w", err)
	}
	return rate, nil
}
