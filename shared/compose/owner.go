package compose

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

const ownerTTL = 5 * time.Minute

// Owner is the tenant of a property.
type Owner struct {
	TenantID   string `json:"tenantId"`
	TenantSlug string `json:"tenantSlug"`
}

// OwnerKey returns the key of a property's owner in the cache, such as
// "prod:bff-consumer:cache:property:ppt_…", for a prefetch on a pipeline. Pure.
func (f *Fetcher) OwnerKey(propertyID string) string {
	return f.keys.Key("cache", "property", propertyID)
}

// Owner returns the owner of a property from the cache or from property-service, and the cache
// entry used, for cache.Loaded.DependsOn. prefetched is the read of OwnerKey; nil makes Owner read
// the key. An entry is fresh for 5 minutes ±10 %. For another 10 minutes it is stale: a single
// caller loads the owner anew, and all other callers, or all after a failure, get the stale owner.
//
// A fresh prefetched owner costs no round trip. A read costs 1 round trip to Redis of at most 200
// ms, and an owner not in the cache a lock in Redis (1 round trip), a call of property-service of
// at most 2 s, and 2 round trips to store the entry. The time limit is that of ctx; a load ends 100
// ms before, and after 2.4 s at the latest. Processes share a load. Without Redis each process
// calls property-service and stores nothing.
//
// The error is upstream.ErrNotFound for an unknown property, which is remembered for 30 s and has
// no dependency; the error of property-service (*upstream.Error); the error of ctx, or
// context.DeadlineExceeded after the time of a load; or the error of decoding the cached owner.
func (f *Fetcher) Owner(ctx context.Context, propertyID string, prefetched *cache.Pending) (Owner, cache.Dependency, error) {
	entry, _, err := f.cache.GetOrLoad(ctx, f.OwnerKey(propertyID), prefetched, cache.Loader{
		TTL: ownerTTL,
		Load: func(ctx context.Context) (cache.Loaded, error) {
			// the owner does not depend on the locale
			detail, err := f.upstreams.Property.Get(ctx, propertyID, locale.Default)
			if errors.Is(err, upstream.ErrNotFound) {
				return notFoundEntry(cache.PropertyTag(propertyID))
			}
			if err != nil {
				return cache.Loaded{}, err
			}
			owner := Owner{detail.TenantID, detail.TenantSlug}
			return encodeEntry(owner, cache.TenantTag(owner.TenantID), cache.PropertyTag(propertyID))
		},
	})
	if err != nil {
		return Owner{}, cache.Dependency{}, err
	}
	if entry.Status == http.StatusNotFound {
		return Owner{}, cache.Dependency{}, upstream.ErrNotFound
	}
	owner, err := f.owners.Decode(entry)
	if err != nil {
		return Owner{}, cache.Dependency{}, fmt.Errorf("compose: cached owner: %w", err)
	}
	return *owner, entry.Dependency(cache.PropertyTag(propertyID), cache.TenantTag(owner.TenantID)), nil
}
