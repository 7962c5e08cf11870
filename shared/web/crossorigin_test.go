package web

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCrossOrigin_RejectsMutationsFromUnlistedOrigins(t *testing.T) {
	const ours, app, tenant = "https://www.example.com", "https://app.example.com", "https://kabul-grand.example.com"
	for _, c := range []struct {
		name, method, origin, site string
		listed                     []string
		refused                    bool
	}{
		{"our own page", "POST", ours, "same-origin", nil, false},
		{"our own page, with others listed", "POST", ours, "same-origin", []string{app}, false},
		{"the guest's own doing", "POST", "", "none", nil, false},
		{"no browser", "POST", "", "", []string{app}, false},
		{"a tenant's page", "POST", tenant, "same-site", nil, true},
		{"a tenant's page removes", "DELETE", tenant, "same-site", nil, true},
		{"a tenant's page, with others listed", "POST", tenant, "same-site", []string{app}, true},
		{"a tenant's page hides its origin", "POST", "null", "same-site", []string{app}, true},
		{"another site's page", "POST", "https://example.org", "cross-site", nil, true},
		{"a page that is listed", "POST", app, "same-site", []string{ours, app}, false},
		{"a page that only reads", "GET", tenant, "same-site", nil, false},
		{"a page that only looks", "HEAD", tenant, "same-site", nil, false},
		{"an old browser, nothing listed", "POST", tenant, "", nil, false},
		{"an old browser on a tenant's page", "POST", tenant, "", []string{ours}, true},
		{"an old browser on our page", "POST", ours, "", []string{ours}, false},
		{"something new", "POST", tenant, "same-planet", nil, true},
	} {
		t.Setenv("PAGE_ORIGINS", strings.Join(c.listed, ","))
		called := false
		pattern := strings.Replace(c.method, "HEAD", "GET", 1) + " /things"
		f := newTestFunction(t, pattern, func(http.ResponseWriter, *http.Request) error { called = true; return nil })
		r := httptest.NewRequest(c.method, "/things", nil)
		for name, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		if called == c.refused || (w.Code == http.StatusForbidden) != c.refused {
			t.Errorf("%s: %d, called %t", c.name, w.Code, called)
		}
		if c.refused && !strings.Contains(w.Body.String(), "CALLER_NOT_ALLOWED") {
			t.Errorf("%s: %s", c.name, w.Body)
		}
	}
}

func TestCrossOrigin_InvalidOriginFailsConfiguration(t *testing.T) {
	for _, wrong := range []string{"www.example.com", "https://", "https://www.example.com/", "https://a.example, https://b.example", "*"} {
		t.Setenv("PAGE_ORIGINS", wrong)
		if _, err := configFromEnv(); err == nil || !strings.Contains(err.Error(), "PAGE_ORIGINS") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}
