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

// prefetchedParts are the cache entries that the slug needs, read in the round trip of BeginRetry.
type prefetchedParts struct{ owner, brand *cache.Pending }

// slug is the name under which the tenant's booking page is reached, when the property is this tenant's. It is the one
// of the brand; while theme-config does not answer, or knows no brand, the one property-service has: a guest who wants
// to book is not sent away for want of a colour.
func (m *Mint) slug(ctx context.Context, prefetched prefetchedParts, in *request) (string, error) {
	var (
		brandErr error
		beside   sync.WaitGroup
	)
	brand, known := m.parts.CachedBrand(prefetched.brand)
	if !known {
		beside.Go(func() { brand, brandErr = m.parts.Brand(ctx, in.TenantID, prefetched.brand) })
	}
	owner, _, err := m.parts.Owner(ctx, in.PropertyID, prefetched.owner)
	beside.Wait()
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

// hotelNotFound names both ids, because which of them is wrong is not known: the hotel may be there and another tenant's.
func hotelNotFound(cause error) error {
	const detail = "There is no such hotel of this tenant."
	p := problem.New(problem.ResourceNotFound, detail, cause)
	for _, field := range []string{"propertyId", "tenantId"} {
		p.Fields = append(p.Fields, problem.FieldError{Field: field, Code: "not-found", Detail: detail})
	}
	return p
}
