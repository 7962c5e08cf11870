package sandbox

import (
	"crypto/sha256"
	"fmt"
	"net/http"
)

type brand struct {
	TenantID     string    `json:"tenantId"`
	TenantSlug   string    `json:"tenantSlug"`
	PrimaryColor string    `json:"primaryColor"`
	LogoURL      string    `json:"logoUrl"`
	BrandName    localized `json:"brandName"`
}

func (s *Sandbox) themeRoutes() http.Handler {
	mux := newMux()
	route(mux, "GET /theme-config/v1/tenants/{id}/brand-peek", s.brandPeek)
	return mux
}

// brandPeek responds with the brand of a tenant, in the colour of the latest published theme.
func (s *Sandbox) brandPeek(r *http.Request) (any, error) {
	t := s.data.Tenant(r.PathValue("id"))
	if t == nil {
		return nil, notFound
	}
	color := t.Color
	if published, ok := s.colors.Load(t.ID); ok {
		color = published.(string)
	}
	return brand{t.ID, t.Slug, color, t.LogoURL, newLocalized(t.Brand.Default, t.Brand.Localized, "")}, nil
}

// PublishTheme sets a tenant's colour for a published version of its theme. The colour depends on
// the version only and is dark enough for white text. It stays until the process ends.
func (s *Sandbox) PublishTheme(tenantID, version string) {
	sum := sha256.Sum256([]byte(version))
	s.colors.Store(tenantID, fmt.Sprintf("#%02x%02x%02x", sum[0]/2, sum[1]/2, sum[2]/2))
}
