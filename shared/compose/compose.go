// Package compose owns the optional parts of an answer, brands and rates: it gathers them from cache and
// upstream inside what is left of the budget, and says what is missing and why; and what a guest is told when a
// mandatory part is missing. It never fails an answer for want of an optional part.
package compose

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
)

// Parts gathers. Safe for concurrent use.
type Parts struct {
	rdb   redis.UniversalClient
	keys  keyspace.Keys
	cache *cache.Cache
	up    *upstream.Upstreams

	brands *cache.Decoded[upstream.Brand]
	owners *cache.Decoded[Owner]
}

const decoded = 1024 // brands, and as many owners: some 300 bytes each

// New makes Parts.
func New(rdb redis.UniversalClient, keys keyspace.Keys, c *cache.Cache, up *upstream.Upstreams) *Parts {
	return &Parts{rdb, keys, c, up, cache.NewDecoded[upstream.Brand](decoded), cache.NewDecoded[Owner](decoded)}
}

const (
	brandTTL    = 15 * time.Minute
	negativeTTL = 30 * time.Second
	brandWall   = 750 * time.Millisecond // for all brands of an answer: a silent theme-config has timed out by then
)

// Brands returns the brand of each tenant that has one, read from the cache in one round trip and from
// theme-config for the rest. The second result names the part when any is missing for want of an answer.
func (p *Parts) Brands(ctx context.Context, tenants []string) (map[string]*upstream.Brand, []view.Degraded) {
	ctx, cancel := context.WithTimeout(ctx, brandWall)
	defer cancel()
	brands, err := gather(ctx, p, tenants, p.BrandKey, p.brand)
	return brands, Missing("theme", err)
}

// Brand is the brand of one tenant, nil when theme-config knows none, within 750 ms. seen is what was
// read of BrandKey, nil to read it now.
func (p *Parts) Brand(ctx context.Context, tenantID string, seen *cache.Peeked) (*upstream.Brand, error) {
	ctx, cancel := context.WithTimeout(ctx, brandWall)
	defer cancel()
	return p.brand(ctx, tenantID, seen)
}

// brand is one tenant's brand, which others share; nil when theme-config knows none.
func (p *Parts) brand(ctx context.Context, tenant string, seen *cache.Peeked) (*upstream.Brand, error) {
	entry, _, err := p.cache.Do(ctx, p.BrandKey(tenant), seen, cache.Recipe{
		TTL: brandTTL,
		Fill: func(ctx context.Context) (cache.Filled, error) {
			brand, err := p.up.Theme.BrandPeek(ctx, tenant)
			if errors.Is(err, upstream.ErrNotFound) {
				return absent(cache.Tenant(tenant))
			}
			if err != nil {
				return cache.Filled{}, err
			}
			return pack(brand, cache.Tenant(tenant))
		},
	})
	if err != nil {
		return nil, err
	}
	return p.brandIn(ctx, tenant, entry)
}

// CachedBrand is Brand when it need wait for nobody, because what was read of BrandKey is fresh; else known is false.
func (p *Parts) CachedBrand(ctx context.Context, tenant string, seen *cache.Peeked) (brand *upstream.Brand, known bool) {
	entry := p.cache.Fresh(seen)
	if entry == nil {
		return nil, false
	}
	brand, err := p.brandIn(ctx, tenant, entry)
	return brand, err == nil
}

func (p *Parts) brandIn(ctx context.Context, tenant string, entry *cache.Entry) (*upstream.Brand, error) {
	cache.Used(ctx, entry, cache.Tenant(tenant))
	if entry.Status == http.StatusNotFound {
		return nil, nil
	}
	brand, err := p.brands.Of(entry)
	if err != nil {
		return nil, fmt.Errorf("compose: cached brand: %w", err)
	}
	return brand, nil
}

// BrandKey names the cache entry of a tenant's brand, for who reads it in a pipeline of its own.
func (p *Parts) BrandKey(tenantID string) string { return p.keys.Key("cache", "brand-peek", tenantID) }

// Rates asks pricing for one batch of quotes, by property id. What is sold out is absent.
func (p *Parts) Rates(ctx context.Context, q upstream.QuoteRequest) (map[string]upstream.Quote, []view.Degraded) {
	quotes, err := p.up.Pricing.Preview(ctx, q)
	return quotes, Missing("pricing", err)
}

// Missing names a part that failed and why; nil when it did not.
func Missing(part string, err error) []view.Degraded {
	if err == nil {
		return nil
	}
	reason := upstream.ReasonOf(err)
	switch {
	case reason != "":
	case errors.Is(err, context.DeadlineExceeded):
		reason = upstream.Timeout
	default:
		reason = upstream.Unavailable
	}
	return []view.Degraded{{Part: part, Reason: string(reason)}}
}

const comeBack = 4 * time.Second // when a breaker that opened just now tries again

// Problem is what a guest is told when a mandatory part is missing: not found, out of time, or not
// available.
func Problem(err error) error {
	switch reason := upstream.ReasonOf(err); {
	case errors.Is(err, upstream.ErrNotFound):
		return problem.New(problem.ResourceNotFound, "There is nothing under this address.", err)
	case reason == upstream.Timeout || reason == upstream.Budget || errors.Is(err, context.DeadlineExceeded):
		return problem.New(problem.UpstreamBudgetExceeded, "The answer was not ready in time. Please try again.", err).After(comeBack)
	case reason != "":
		return problem.New(problem.UpstreamUnavailable, "This cannot be answered at present. Please try again in a moment.", err).After(comeBack)
	default:
		return err
	}
}
