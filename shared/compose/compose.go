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
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
)

// Fetcher gathers. Safe for concurrent use.
type Fetcher struct {
	rdb       redis.UniversalClient
	keys      redisclient.Keys
	cache     *cache.Cache
	upstreams *upstream.Upstreams

	brands *cache.Decoder[upstream.Brand]
	owners *cache.Decoder[Owner]
}

const decodedCacheSize = 1024 // brands, and as many owners: some 300 bytes each

// New makes Parts.
func New(rdb redis.UniversalClient, keys redisclient.Keys, c *cache.Cache, up *upstream.Upstreams) *Fetcher {
	return &Fetcher{rdb, keys, c, up, cache.NewDecoder[upstream.Brand](decodedCacheSize), cache.NewDecoder[Owner](decodedCacheSize)}
}

const (
	brandTTL     = 15 * time.Minute
	negativeTTL  = 30 * time.Second
	brandTimeout = 750 * time.Millisecond // for all brands of an answer: a silent theme-config has timed out by then
)

// Brands returns the brand of each tenant that has one, read from the cache in one round trip and from
// theme-config for the rest. The second result names the part when any is missing for want of an answer.
func (p *Fetcher) Brands(ctx context.Context, tenants []string) (map[string]*upstream.Brand, []cache.Dependency, []view.Degraded) {
	ctx, cancel := context.WithTimeout(ctx, brandTimeout)
	defer cancel()
	found, err := gather(ctx, p, tenants, p.BrandKey, p.fetchBrand)
	brands := make(map[string]*upstream.Brand, len(found))
	parts := make([]cache.Dependency, 0, len(found))
	for tenant, f := range found {
		parts = append(parts, f.entry.Dependency(cache.TenantTag(tenant)))
		if f.brand != nil {
			brands[tenant] = f.brand
		}
	}
	return brands, parts, DegradedPart("theme", err)
}

// Brand is the brand of one tenant, nil when theme-config knows none, within 750 ms. seen is what was
// read of BrandKey, nil to read it now.
func (p *Fetcher) Brand(ctx context.Context, tenantID string, seen *cache.Pending) (*upstream.Brand, error) {
	ctx, cancel := context.WithTimeout(ctx, brandTimeout)
	defer cancel()
	found, err := p.fetchBrand(ctx, tenantID, seen)
	if err != nil {
		return nil, err
	}
	return found.brand, nil
}

// fetchedBrand is a tenant's brand and the cache entry that holds it.
type fetchedBrand struct {
	brand *upstream.Brand // nil: theme-config knows none
	entry *cache.Entry
}

// fetchBrand is one tenant's brand, which others share; nil when theme-config knows none.
func (p *Fetcher) fetchBrand(ctx context.Context, tenant string, seen *cache.Pending) (*fetchedBrand, error) {
	entry, _, err := p.cache.GetOrLoad(ctx, p.BrandKey(tenant), seen, cache.Loader{
		TTL: brandTTL,
		Load: func(ctx context.Context) (cache.Loaded, error) {
			brand, err := p.upstreams.Theme.BrandPeek(ctx, tenant)
			if errors.Is(err, upstream.ErrNotFound) {
				return notFoundEntry(cache.TenantTag(tenant))
			}
			if err != nil {
				return cache.Loaded{}, err
			}
			return encodeEntry(brand, cache.TenantTag(tenant))
		},
	})
	if err != nil {
		return nil, err
	}
	brand, err := p.decodeBrand(entry)
	if err != nil {
		return nil, err
	}
	return &fetchedBrand{brand, entry}, nil
}

// CachedBrand is Brand when it need wait for nobody, because what was read of BrandKey is fresh; else known is false.
func (p *Fetcher) CachedBrand(seen *cache.Pending) (brand *upstream.Brand, known bool) {
	entry := p.cache.Fresh(seen)
	if entry == nil {
		return nil, false
	}
	brand, err := p.decodeBrand(entry)
	return brand, err == nil
}

func (p *Fetcher) decodeBrand(entry *cache.Entry) (*upstream.Brand, error) {
	if entry.Status == http.StatusNotFound {
		return nil, nil
	}
	brand, err := p.brands.Decode(entry)
	if err != nil {
		return nil, fmt.Errorf("compose: cached brand: %w", err)
	}
	return brand, nil
}

// BrandKey names the cache entry of a tenant's brand, for who reads it in a pipeline of its own.
func (p *Fetcher) BrandKey(tenantID string) string {
	return p.keys.Key("cache", "brand-peek", tenantID)
}

// Rates asks pricing for one batch of quotes, by property id. What is sold out is absent.
func (p *Fetcher) Rates(ctx context.Context, q upstream.QuoteRequest) (map[string]upstream.Quote, []view.Degraded) {
	quotes, err := p.upstreams.Pricing.Preview(ctx, q)
	return quotes, DegradedPart("pricing", err)
}

// DegradedPart names a part that failed and why; nil when it did not.
func DegradedPart(part string, err error) []view.Degraded {
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

const retryAfter = 4 * time.Second // when a breaker that opened just now tries again

// Problem is what a guest is told when a mandatory part is missing: not found, out of time, or not
// available.
func Problem(err error) error {
	switch reason := upstream.ReasonOf(err); {
	case errors.Is(err, upstream.ErrNotFound):
		return problem.New(problem.ResourceNotFound, "There is nothing under this address.", err)
	case reason == upstream.Timeout || reason == upstream.Budget || errors.Is(err, context.DeadlineExceeded):
		return problem.New(problem.UpstreamBudgetExceeded, "The answer was not ready in time. Please try again.", err).WithRetryAfter(retryAfter)
	case reason != "":
		return problem.New(problem.UpstreamUnavailable, "This cannot be answered at present. Please try again in a moment.", err).WithRetryAfter(retryAfter)
	default:
		return err
	}
}
