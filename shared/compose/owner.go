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

// Owner is whose a property is.
type Owner struct {
	TenantID   string `json:"tenantId"`
	TenantSlug string `json:"tenantSlug"`
}

// OwnerKey names the cache entry of a property's owner, for who reads it in a pipeline of its own.
func (p *Fetcher) OwnerKey(propertyID string) string {
	return p.keys.Key("cache", "property", propertyID)
}

// Owner says whose the property is: from the cache, where the answer is good for 5 minutes, else from
// property-service. upstream.ErrNotFound when there is no such property; that is remembered for 30 seconds.
// seen is what was read of OwnerKey, nil to read it now.
func (p *Fetcher) Owner(ctx context.Context, propertyID string, seen *cache.Pending) (Owner, cache.Dependency, error) {
	entry, _, err := p.cache.GetOrLoad(ctx, p.OwnerKey(propertyID), seen, cache.Loader{
		TTL: ownerTTL,
		Load: func(ctx context.Context) (cache.Loaded, error) {
			detail, err := p.upstreams.Property.Get(ctx, propertyID, locale.Default) // an owner has no language
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
	owner, err := p.owners.Decode(entry)
	if err != nil {
		return Owner{}, cache.Dependency{}, fmt.Errorf("compose: cached owner: %w", err)
	}
	return *owner, entry.Dependency(cache.PropertyTag(propertyID), cache.TenantTag(owner.TenantID)), nil
}
