package search

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
)

const spotlightTTL = 50 * time.Second // with its jitter still inside the 60 s of a rate

// cachedRate is a cached rate; Rate is nil when the property is sold out.
type cachedRate struct {
	Rate  *view.RateSnapshot `json:"rate"`
	Until time.Time          `json:"until"`
}

// spotlightRate is the rate of one pin. A pin cannot say that its rate is stale, so an old one is not shown
// but named as missing, like one pricing did not give.
func (f *Finder) spotlightRate(ctx context.Context, guest *guest.Guest, q upstream.SearchQuery, hash string, property upstream.PropertyRef) (*view.RateSnapshot, []view.Degraded) {
	key := f.spotlightKey(hash, property.PropertyID)
	entry, _, err := f.cache.GetOrLoad(ctx, key, guest.Prefetched(key), cache.Loader{
		TTL: spotlightTTL,
		Load: func(ctx context.Context) (cache.Loaded, error) {
			quotes, err := f.upstreams.Pricing.Preview(ctx, quoteRequest(q, []upstream.PropertyRef{property}))
			if err != nil {
				return cache.Loaded{}, err
			}
			var l cachedRate
			if quote, ok := quotes[property.PropertyID]; ok {
				rate, until := view.NewRateSnapshot(&quote, f.now())
				l = cachedRate{&rate, until}
			}
			body, err := json.Marshal(l)
			if err != nil {
				return cache.Loaded{}, fmt.Errorf("search: encode rate: %w", err)
			}
			entry, err := cache.NewEntry(http.StatusOK, body, nil, nil)
			return cache.Loaded{Entry: entry, Tags: []string{cache.TenantTag(property.TenantID), cache.PropertyTag(property.PropertyID)}}, err
		},
	})
	var l cachedRate
	if err == nil {
		l, err = decodeCachedRate(entry)
	}
	switch {
	case err != nil:
		return nil, compose.DegradedPart("pricing", err)
	case l.Rate != nil && f.now().After(l.Until):
		return nil, []view.Degraded{{Part: "pricing", Reason: string(upstream.Unavailable)}}
	default:
		return l.Rate, nil
	}
}

func decodeCachedRate(e *cache.Entry) (l cachedRate, err error) {
	body, err := e.Body()
	if err != nil {
		return cachedRate{}, err
	}
	if err := json.Unmarshal(body, &l); err != nil {
		return cachedRate{}, fmt.Errorf("search: cached rate: %w", err)
	}
	return l, nil
}
