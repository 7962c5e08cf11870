package upstream

import (
	"context"
	"net/url"
)

// Theme is theme-config: 600 ms a try, one retry.
type Theme struct{ c *client }

// Brand is a tenant's face on a card.
type Brand struct {
	TenantID     string    `json:"tenantId"`
	TenantSlug   string    `json:"tenantSlug"`
	PrimaryColor string    `json:"primaryColor"` // #rrggbb
	LogoURL      string    `json:"logoUrl"`
	BrandName    Localized `json:"brandName"`
}

// BrandPeek reads one tenant's brand. ErrNotFound when theme-config does not know the tenant; otherwise fails as
// *Error.
func (t *Theme) BrandPeek(ctx context.Context, tenantID string) (Brand, error) {
	q := call{path: "/theme-config/v1/tenants/" + url.PathEscape(tenantID) + "/brand-peek"}
	return fetch(ctx, t.c, q, func(b *Brand) error {
		if b.TenantID != tenantID || !validSlug(b.TenantSlug) || !validColor(b.PrimaryColor) || !validURL(b.LogoURL) || !b.BrandName.valid() {
			return errInvalidMandatory
		}
		return nil
	})
}
