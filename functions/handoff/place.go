package handoff

import (
	"context"
	"errors"
	"sync"

	"melmastoon.ghasi.io/bff-consumer/shared/admission"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// slug is the name under which the tenant's booking page is reached, when the property is this tenant's. It is the one
// of the brand; while theme-config does not answer, or knows no brand, the one property-service has: a guest who wants
// to book is not sent away for want of a colour.
func (m *Mint) slug(ctx context.Context, guest *admission.Guest, in *request) (string, error) {
	var (
		seen     = guest.Seen(m.compose.BrandKey(in.TenantID))
		brandErr error
		beside   sync.WaitGroup
	)
	brand, known := m.compose.CachedBrand(ctx, in.TenantID, seen)
	if !known {
		beside.Go(func() { brand, brandErr = m.compose.Brand(ctx, in.TenantID, seen) })
	}
	owner, err := m.compose.Owner(ctx, in.PropertyID, guest.Seen(m.compose.OwnerKey(in.PropertyID)))
	beside.Wait()
	switch {
	case errors.Is(err, upstream.ErrNotFound):
		return "", noSuchHotel(err)
	case err != nil:
		return "", compose.Problem(err)
	case owner.TenantID != in.TenantID:
		return "", noSuchHotel(errors.New("handoff: the property is another tenant's"))
	}
	if brand == nil {
		if brandErr != nil {
			web.From(ctx).Note("degraded", compose.Missing("theme", brandErr)[0].Reason)
		}
		return owner.TenantSlug, nil
	}
	return brand.TenantSlug, nil
}

// noSuchHotel names both ids, because which of them is wrong is not known: the hotel may be there and another tenant's.
func noSuchHotel(cause error) error {
	const detail = "There is no such hotel of this tenant."
	p := problem.New(problem.ResourceNotFound, detail, cause)
	for _, field := range []string{"propertyId", "tenantId"} {
		p.Fields = append(p.Fields, problem.Field{Field: field, Code: "not-found", Detail: detail})
	}
	return p
}
