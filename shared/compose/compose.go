// Package compose fetches the parts of a response from cache and upstreams: brands, rates, listed
// properties and owners. It names missing optional parts with a reason, and maps the failure of a
// mandatory part to a problem. It never fails a response because an optional part is missing, and
// writes no response.
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

// Fetcher fetches parts from cache and upstreams. It keeps at most 1,024 decoded brands and as many
// owners in memory, of about 300 bytes each; each of the two memories has a mutex, held for a
// moment. Safe for concurrent use.
type Fetcher struct {
	rdb       redis.UniversalClient
	keys      redisclient.Keys
	cache     *cache.Cache
	upstreams *upstream.Upstreams

	brands *cache.Decoder[upstream.Brand]
	owners *cache.Decoder[Owner]
}

const decodedCacheSize = 1024 // brands, and as many owners; about 300 bytes each

// New returns a Fetcher and does no I/O. It never fails.
func New(rdb redis.UniversalClient, keys redisclient.Keys, c *cache.Cache, up *upstream.Upstreams) *Fetcher {
	return &Fetcher{rdb, keys, c, up, cache.NewDecoder[upstream.Brand](decodedCacheSize), cache.NewDecoder[Owner](decodedCacheSize)}
}

const (
	brandTTL    = 15 * time.Minute
	negativeTTL = 30 * time.Second
	// for all brands of a response; the first try of theme-config ends after 600 ms
	brandTimeout = 750 * time.Millisecond
)

// Brands returns the brand of each tenant with a brand, the cache entries used, for
// cache.Loaded.DependsOn, and the degraded part "theme" if any brand could not be fetched. It never
// fails, takes at most 750 ms, and then returns the brands found so far. The brands are shared; do
// not change them.
//
// Cost: 1 Redis round trip for all cached brands. A brand not in the cache costs a lock in Redis (1
// round trip), a call of theme-config, and 2 round trips to store the entry, up to 16 brands at a
// time; processes share such a load. A brand is fresh for 15 minutes ±10 %. For another 10 minutes
// it is stale: a single caller loads the brand anew, and all other callers, or all after a failure,
// get the stale brand. An unknown tenant is remembered for 30 s. Without tenants there is no cost.
//
// Without Redis, Brands calls theme-config for every tenant, in the time that is left: until the
// breaker of the Redis client opens, Redis may use up most of the 750 ms. A ctx cancelled before
// the call gives no brands and the reason "unavailable", an expired ctx "timeout"; a deadline that
// passes during the call of theme-config gives "budget".
func (f *Fetcher) Brands(ctx context.Context, tenants []string) (map[string]*upstream.Brand, []cache.Dependency, []view.Degraded) {
	ctx, cancel := context.WithTimeout(ctx, brandTimeout)
	defer cancel()
	found, err := gather(ctx, f, tenants, f.BrandKey, f.fetchBrand)
	brands := make(map[string]*upstream.Brand, len(found))
	parts := make([]cache.Dependency, 0, len(found))
	for tenant, b := range found {
		parts = append(parts, b.entry.Dependency(cache.TenantTag(tenant)))
		if b.brand != nil {
			brands[tenant] = b.brand
		}
	}
	return brands, parts, DegradedPart("theme", err)
}

// Brand returns the brand of a tenant; nil without an error if theme-config does not know the
// tenant. It takes at most 750 ms. prefetched is the read of BrandKey; nil makes Brand read the
// key. The brand is shared; do not change it.
//
// A fresh prefetched brand costs no round trip. A read costs 1 round trip to Redis, and a brand not
// in the cache a lock in Redis (1 round trip), a call of theme-config, and 2 round trips to store
// the entry. Freshness and behaviour without Redis are those of Brands. Errors occur only without a
// fresh or stale brand: that of theme-config (*upstream.Error), that of ctx,
// context.DeadlineExceeded after the 750 ms, or the error of decoding the cached brand.
func (f *Fetcher) Brand(ctx context.Context, tenantID string, prefetched *cache.Pending) (*upstream.Brand, error) {
	ctx, cancel := context.WithTimeout(ctx, brandTimeout)
	defer cancel()
	found, err := f.fetchBrand(ctx, tenantID, prefetched)
	if err != nil {
		return nil, err
	}
	return found.brand, nil
}

// fetchedBrand is a tenant's brand with its cache entry.
type fetchedBrand struct {
	brand *upstream.Brand // nil: unknown to theme-config
	entry *cache.Entry
}

// fetchBrand reads a tenant's brand from the cache or loads the brand from theme-config.
func (f *Fetcher) fetchBrand(ctx context.Context, tenant string, prefetched *cache.Pending) (*fetchedBrand, error) {
	entry, _, err := f.cache.GetOrLoad(ctx, f.BrandKey(tenant), prefetched, cache.Loader{
		TTL: brandTTL,
		Load: func(ctx context.Context) (cache.Loaded, error) {
			brand, err := f.upstreams.Theme.Brand(ctx, tenant)
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
	brand, err := f.decodeBrand(entry)
	if err != nil {
		return nil, err
	}
	return &fetchedBrand{brand, entry}, nil
}

// CachedBrand returns the brand if the prefetched cache entry is fresh; otherwise, for a nil
// prefetched, and for an entry that cannot be decoded, it returns (nil, false). brand is nil, with
// known true, for a tenant unknown to theme-config. CachedBrand does no I/O and never fails; the
// pipeline of prefetched must have run. The brand is shared; do not change it.
func (f *Fetcher) CachedBrand(prefetched *cache.Pending) (brand *upstream.Brand, known bool) {
	entry := f.cache.Fresh(prefetched)
	if entry == nil {
		return nil, false
	}
	brand, err := f.decodeBrand(entry)
	return brand, err == nil
}

// decodeBrand returns the brand of a cache entry; nil for a negative entry.
func (f *Fetcher) decodeBrand(entry *cache.Entry) (*upstream.Brand, error) {
	if entry.Status == http.StatusNotFound {
		return nil, nil
	}
	brand, err := f.brands.Decode(entry)
	if err != nil {
		return nil, fmt.Errorf("compose: cached brand: %w", err)
	}
	return brand, nil
}

// BrandKey returns the key of a tenant's brand in the cache, such as
// "prod:bff-consumer:cache:brand-peek:tnt_…", for a prefetch on a pipeline. Pure.
func (f *Fetcher) BrandKey(tenantID string) string {
	return f.keys.Key("cache", "brand-peek", tenantID)
}

// Rates returns the quotes of a batch of at most 50 properties by property id, and the degraded
// part "pricing" if pricing fails; the quotes are nil then. Sold-out properties are absent. Cost:
// one call of pricing, at most 800 ms including a retry; none for an empty batch; no Redis. Rates
// never fails: a cancelled ctx gives the reason "unavailable", a deadline of ctx "budget".
func (f *Fetcher) Rates(ctx context.Context, q upstream.QuoteRequest) (map[string]upstream.Quote, []view.Degraded) {
	quotes, err := f.upstreams.Pricing.Preview(ctx, q)
	return quotes, DegradedPart("pricing", err)
}

// DegradedPart returns the degraded part with the reason of err: the reason of an *upstream.Error,
// "timeout" for context.DeadlineExceeded, otherwise "unavailable", also for a cancelled context and
// upstream.ErrNotFound. It returns nil for a nil err. Pure.
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

const retryAfter = 4 * time.Second // the pause of an open breaker of an upstream

// Problem maps the failure of a mandatory part to a problem: not found (upstream.ErrNotFound),
// timed out (Reason Timeout or Budget, or context.DeadlineExceeded), or unavailable (any other
// *upstream.Error); the last two have a Retry-After of 4 s. It returns any other error unchanged,
// also context.Canceled, so that the error becomes Internal, and nil for nil. Pure.
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
