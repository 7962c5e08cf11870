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

// OwnerKey returns the key of a property's owner in the cache, for a prefetch on a pipeline.
func (f *Fetcher) OwnerKey(propertyID string) string {
	return f.keys.Key("cache", "property", propertyID)
}

// Owner returns the owner of a property from the cache, where the entry is fresh for 5 minutes, or
// from property-service, and the cache entry used, for cache.Loaded.DependsOn. prefetched is the
// read of OwnerKey; nil makes Owner read the key. The time limit is that of ctx; property-service
// takes at most 2 s. Cost and behaviour without Redis are those of cache.GetOrLoad. The error is
// upstream.ErrNotFound for an unknown property, which is remembered for 30 s and has no dependency,
// the error of property-service (*upstream.Error), or the error of ctx.
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
