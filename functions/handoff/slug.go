package handoff

import (
	"context"
	"errors"
	"sync"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// prefetchedParts are the cache entries for the slug, read in the round trip of BeginRetry.
type prefetchedParts struct{ owner, brand *cache.Pending }

// slug checks the owner of the property and returns the name of the tenant's booking page. The slug
// comes from theme-config's brand. While theme-config does not answer within 750 ms, or knows no
// brand, the slug of property-service is used: a guest can book without the brand.
//
// Fresh cache entries cost nothing; else property-service and theme-config are called side by side.
// Its errors are problems: 404 for an unknown property or a property of another tenant, 503 or 504
// without property-service.
func (m *Mint) slug(ctx context.Context, prefetched prefetchedParts, in *request) (string, error) {
	var (
		brandErr error
		brandWG  sync.WaitGroup
	)
	brand, known := m.parts.CachedBrand(prefetched.brand)
	if !known {
		brandWG.Go(func() { brand, brandErr = m.parts.Brand(ctx, in.TenantID, prefetched.brand) })
	}
	owner, _, err := m.parts.Owner(ctx, in.PropertyID, prefetched.owner)
	brandWG.Wait()
	switch {
	case errors.Is(err, upstream.ErrNotFound):
		return "", hotelNotFound(err)
	case err != nil:
		return "", compose.Problem(err)
	case owner.TenantID != in.TenantID:
		return "", hotelNotFound(errors.New("handoff: the property is another tenant's"))
	}
	if brand == nil {
		if brandErr != nil {
			web.FromContext(ctx).AddLogField("degraded", compose.DegradedPart("theme", brandErr)[0].Reason)
		}
		return owner.TenantSlug, nil
	}
	return brand.TenantSlug, nil
}

// hotelNotFound returns a 404 problem that names both ids: either may be wrong, because the hotel
// may belong to another tenant.
func hotelNotFound(cause error) error {
	const detail = "There is no such hotel of this tenant."
	p := problem.New(problem.ResourceNotFound, detail, cause)
	for _, field := range []string{"propertyId", "tenantId"} {
		p.Fields = append(p.Fields, problem.FieldError{Field: field, Code: "not-found", Detail: detail})
	}
	return p
}
