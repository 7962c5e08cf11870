package compose

import (
	"context"
	"errors"
	"fmt"
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

// BrandKey names the cache entry of a tenant's brand.
func (p *Parts) BrandKey(tenantID string) string { return p.brandKey(tenantID) }

// Owner says whose the property is: from the cache, where the answer is good for 5 minutes, else from
// property-service. upstream.ErrNotFound when there is no such property; that is remembered for 30 seconds.
// seen is what was read of OwnerKey, nil to read it now.
func (p *Parts) Owner(ctx context.Context, propertyID string, seen *cache.Peeked) (Owner, error) {
	entry, _, err := p.cache.Do(ctx, p.OwnerKey(propertyID), seen, cache.Recipe{
		TTL: ownerTTL,
		Fill: func(ctx context.Context) (cache.Filled, error) {
			detail, err := p.up.Property.Get(ctx, propertyID, locale.Default) // an owner has no language
			if errors.Is(err, upstream.ErrNotFound) {
				entry, err := cache.Pack(404, nil, nil, nil)
				return cache.Filled{Entry: entry, TTL: negativeTTL, Tags: []string{cache.Property(propertyID)}}, err
			}
			if err != nil {
				return cache.Filled{}, err
			}
			filled, err := pack(200, Owner{detail.TenantID, detail.TenantSlug}, 0, detail.TenantID)
			filled.Tags = append(filled.Tags, cache.Property(propertyID))
			return filled, err
		},
	})
	if err != nil {
		return Owner{}, err
	}
	if entry.Status == 404 {
		return Owner{}, upstream.ErrNotFound
	}
	owner, err := p.owners.Of(entry)
	if err != nil {
		return Owner{}, fmt.Errorf("compose: cached owner: %w", err)
	}
	cache.Used(ctx, entry, cache.Property(propertyID), cache.Tenant(owner.TenantID))
	return *owner, nil
}

// Brand is the brand of one tenant, nil when theme-config knows none, within 600 ms. seen is what was
// read of BrandKey, nil to read it now.
func (p *Parts) Brand(ctx context.Context, tenantID string, seen *cache.Peeked) (*upstream.Brand, error) {
	ctx, cancel := context.WithTimeout(ctx, brandWall)
	defer cancel()
	return p.brand(ctx, tenantID, seen)
}
