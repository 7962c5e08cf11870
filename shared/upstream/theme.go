package upstream

import (
	"context"
	"net/url"
)

// Theme is the client of theme-config: 600 ms per try, one retry, so at most 1,200 ms. Safe for
// concurrent use.
type Theme struct{ c *client }

// Brand is a tenant's branding of cards and pages.
type Brand struct {
	TenantID     string    `json:"tenantId"`
	TenantSlug   string    `json:"tenantSlug"`
	PrimaryColor string    `json:"primaryColor"` // #rrggbb
	LogoURL      string    `json:"logoUrl"`
	BrandName    Localized `json:"brandName"`
}

// Brand returns a tenant's brand: GET, within at most 1,200 ms including a retry. The error is
// ErrNotFound for a tenant unknown to theme-config, or one of the package's rules: an *Error, or an
// error that wraps context.Canceled. A bad value, or the brand of another tenant, is an *Error of
// Reason BadResponse; a bad translation of the name is only removed.
func (t *Theme) Brand(ctx context.Context, tenantID string) (Brand, error) {
	q := call{path: "/theme-config/v1/tenants/" + url.PathEscape(tenantID) + "/brand-peek"}
	return fetch(ctx, t.c, q, func(b *Brand) error {
		if b.TenantID != tenantID || !validSlug(b.TenantSlug) || !validColor(b.PrimaryColor) || !validURL(b.LogoURL) || !b.BrandName.valid() {
			return errInvalidMandatory
		}
		return nil
	})
}
