package compose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
)

const (
	hitTTL    = 5 * time.Minute
	hitsWall  = 1_200 * time.Millisecond // for all hits of an answer together
	hitsAside = 16                       // calls to search-aggregation at once
)

// Hits returns each property that search-aggregation lists, as a search would show it but without a rate, read from the
// cache in one round trip and from search-aggregation for the rest. The second result names the part when any is missing
// for want of an answer.
func (p *Parts) Hits(ctx context.Context, properties []string, l locale.Tag, c money.Currency) (map[string]*upstream.Hit, []view.Degraded) {
	ctx, cancel := context.WithTimeout(ctx, hitsWall)
	defer cancel()
	pipe := p.rdb.Pipeline()
	seen := make([]*cache.Peeked, len(properties))
	for i, property := range properties {
		seen[i] = p.cache.Peek(ctx, pipe, p.hitKey(property, l, c))
	}
	pipe.Exec(ctx) // a command that failed is a miss

	var (
		mu     sync.Mutex
		hits   = make(map[string]*upstream.Hit, len(properties))
		failed error
		group  errgroup.Group
	)
	group.SetLimit(hitsAside)
	for i, property := range properties {
		group.Go(func() error {
			hit, err := p.hit(ctx, property, l, c, seen[i])
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
			} else if hit != nil {
				hits[property] = hit
			}
			return nil
		})
	}
	group.Wait()
	return hits, Missing("search", failed)
}

// hit is one property; nil when search-aggregation does not list it.
func (p *Parts) hit(ctx context.Context, property string, l locale.Tag, c money.Currency, seen *cache.Peeked) (*upstream.Hit, error) {
	entry, _, err := p.cache.Do(ctx, p.hitKey(property, l, c), seen, cache.Recipe{
		TTL: hitTTL,
		Fill: func(ctx context.Context) (cache.Filled, error) {
			found, err := p.up.Search.Hotel(ctx, property, l, c)
			if errors.Is(err, upstream.ErrNotFound) {
				entry, err := cache.Pack(http.StatusNotFound, nil, nil, nil)
				return cache.Filled{Entry: entry, TTL: negativeTTL, Tags: []string{cache.Property(property)}}, err
			}
			if err != nil {
				return cache.Filled{}, err
			}
			filled, err := pack(http.StatusOK, found.Hit, 0, found.Hit.TenantID)
			filled.Tags = append(filled.Tags, cache.Property(property))
			return filled, err
		},
	})
	if err != nil || entry.Status == http.StatusNotFound {
		return nil, err
	}
	var hit upstream.Hit
	body, err := entry.Body()
	if err == nil {
		err = json.Unmarshal(body, &hit)
	}
	if err != nil {
		return nil, fmt.Errorf("compose: cached hit: %w", err)
	}
	cache.Used(ctx, entry, cache.Property(property), cache.Tenant(hit.TenantID))
	return &hit, nil
}

func (p *Parts) hitKey(property string, l locale.Tag, c money.Currency) string {
	return p.keys.Key("cache", "listing", property, string(l), string(c))
}
