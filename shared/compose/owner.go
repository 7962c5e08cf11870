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
func (p *Parts) OwnerKey(propertyID string) string {
	return p.keys.Key("cache", "property", propertyID)
}

// Owner says whose the property is: from the cache, where the answer is good for 5 minutes, else from
// property-service. upstream.ErrNotFound when there is no such property; that is remembered for 30 seconds.
// seen is what was read of OwnerKey, nil to read it now.
func (p *Parts) Owner(ctx context.Context, propertyID string, seen *cache.Peeked) (Owner, error) {
	entry, _, err := p.cache.Do(ctx, p.OwnerKey(propertyID), seen, cache.Recipe{
		TTL: ownerTTL,
		Fill: func(ctx context.Context) (cache.Filled, error) {
			detail, err := p.up.Property.Get(ctx, propertyID, locale.Default) // an owner has no language
			if errors.Is(err, upstream.ErrNotFound) {
				return absent(cache.Property(propertyID))
			}
			if err != nil {
				return cache.Filled{}, err
			}
			owner := Owner{detail.TenantID, detail.TenantSlug}
			return pack(owner, cache.Tenant(owner.TenantID), cache.Property(propertyID))
		},
	})
	if err != nil {
		return Owner{}, err
	}
	if entry.Status == http.StatusNotFound {
		return Owner{}, upstream.ErrNotFound
	}
	owner, err := p.owners.Of(entry)
	if err != nil {
		return Owner{}, fmt.Errorf("compose: cached owner: %w", err)
	}
	cache.Used(ctx, entry, cache.Property(propertyID), cache.Tenant(owner.TenantID))
	return *owner, nil
}
