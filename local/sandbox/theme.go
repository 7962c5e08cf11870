package sandbox

import "net/http"

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

func (s *Sandbox) brandPeek(r *http.Request) (any, error) {
	t := s.data.Tenant(r.PathValue("id"))
	if t == nil {
		return nil, notFound
	}
	return brand{t.ID, t.Slug, t.Color, t.LogoURL, named(t.Brand.Default, t.Brand.Localized, "")}, nil
}
