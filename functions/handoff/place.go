package handoff

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"melmastoon.ghasi.io/bff-consumer/shared/admission"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// slug is the name under which the tenant's booking page is reached, when the property is this tenant's. It is the one
// of the brand; while theme-config does not answer, or knows no brand, the one property-service has: a guest who wants
// to book is not sent away for want of a colour.
func (m *Mint) slug(ctx context.Context, guest *admission.Guest, in *request) (string, error) {
	var (
		owner    compose.Owner
		brand    *upstream.Brand
		brandErr error
		group    errgroup.Group
	)
	group.Go(func() (err error) {
		owner, err = m.compose.Owner(ctx, in.PropertyID, guest.Seen(m.compose.OwnerKey(in.PropertyID)))
		return err
	})
	group.Go(func() error {
		brand, brandErr = m.compose.Brand(ctx, in.TenantID, guest.Seen(m.compose.BrandKey(in.TenantID)))
		return nil
	})
	if err := group.Wait(); err != nil {
		return "", compose.Problem(err)
	}
	if owner.TenantID != in.TenantID {
		return "", compose.Problem(fmt.Errorf("handoff: the property is another tenant's: %w", upstream.ErrNotFound))
	}
	if brand == nil {
		if brandErr != nil {
			web.From(ctx).Note("degraded", compose.Missing("theme", brandErr)[0].Reason)
		}
		return owner.TenantSlug, nil
	}
	return brand.TenantSlug, nil
}
