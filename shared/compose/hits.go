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
	hitTTL   = 5 * time.Minute
	hitsWall = 1_200 * time.Millisecond // for all hits of an answer together
)

// Hits returns each property that search-aggregation lists, as a search would show it but without a rate, read from the
// cache in one round trip and from search-aggregation for the rest. The second result names the part when any is
// missing for want of an answer.
func (p *Parts) Hits(ctx context.Context, properties []string, l locale.Tag, c money.Currency) (map[string]*upstream.Hit, []view.Degraded) {
	ctx, cancel := context.WithTimeout(ctx, hitsWall)
	defer cancel()
	key := func(property string) string { return p.hitKey(property, l, c) }
	hits, err := gather(ctx, p, properties, key, func(ctx context.Context, property string, seen *cache.Peeked) (*upstream.Hit, error) {
		return p.hit(ctx, property, l, c, seen)
	})
	return hits, Missing("search", err)
}

// hit is one property; nil when search-aggregation does not list it.
func (p *Parts) hit(ctx context.Context, property string, l locale.Tag, c money.Currency, seen *cache.Peeked) (*upstream.Hit, error) {
	entry, _, err := p.cache.Do(ctx, p.hitKey(property, l, c), seen, cache.Recipe{
		TTL: hitTTL,
		Fill: func(ctx context.Context) (cache.Filled, error) {
			found, err := p.up.Search.Hotel(ctx, property, l, c)
			if errors.Is(err, upstream.ErrNotFound) {
				return absent(cache.Property(property))
			}
			if err != nil {
				return cache.Filled{}, err
			}
			return pack(found.Hit, cache.Tenant(found.Hit.TenantID), cache.Property(property))
		},
	})
	if err != nil || entry.Status == http.StatusNotFound {
		return nil, err
	}
	var hit upstream.Hit
	if err := unpack(entry, &hit); err != nil {
		return nil, fmt.Errorf("compose: cached hit: %w", err)
	}
	cache.Used(ctx, entry, cache.Property(property), cache.Tenant(hit.TenantID))
	return &hit, nil
}

func (p *Parts) hitKey(property string, l locale.Tag, c money.Currency) string {
	return p.keys.Key("cache", "listing", property, string(l), string(c))
}
