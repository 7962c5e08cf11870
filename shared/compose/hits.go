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
	hitsTimeout = 1_200 * time.Millisecond // for all hits of an answer together
)

// Hits returns each property that search-aggregation lists, as a search would show it but without a rate, read from the
// cache in one round trip and from search-aggregation for the rest. The second result names the part when any is
// missing for want of an answer.
func (p *Fetcher) Hits(ctx context.Context, properties []string, l locale.Tag, c money.Currency) (map[string]*upstream.Hit, []view.Degraded) {
	ctx, cancel := context.WithTimeout(ctx, hitsTimeout)
	defer cancel()
	key := func(property string) string { return p.hitKey(property, l, c) }
	hits, err := gather(ctx, p, properties, key, func(ctx context.Context, property string, seen *cache.Pending) (*upstream.Hit, error) {
		return p.fetchHit(ctx, property, l, c, seen)
	})
	return hits, DegradedPart("search", err)
}

// fetchHit is one property; nil when search-aggregation does not list it.
func (p *Fetcher) fetchHit(ctx context.Context, property string, l locale.Tag, c money.Currency, seen *cache.Pending) (*upstream.Hit, error) {
	entry, _, err := p.cache.GetOrLoad(ctx, p.hitKey(property, l, c), seen, cache.Loader{
		TTL: hitTTL,
		Load: func(ctx context.Context) (cache.Loaded, error) {
			found, err := p.upstreams.Search.Hotel(ctx, property, l, c)
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

func (p *Fetcher) hitKey(property string, l locale.Tag, c money.Currency) string {
	return p.keys.Key("cache", "listing", property, string(l), string(c))
}
