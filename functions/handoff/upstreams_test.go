package handoff

import (
	"fmt"
	"net/http"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

func propertyID(n int) string { return functest.PropertyID(n) }
func tenantID(n int) string   { return functest.TenantID(n) }

// newUpstreams starts fake upstreams that know property n of tenant n.
func newUpstreams(t testing.TB) *functest.Upstreams {
	return functest.NewUpstreams(t, functest.UpstreamHandlers{
		"theme": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, `{"tenantId":%q,"tenantSlug":"kabul-grand","primaryColor":"#aabbcc","logoUrl":"https://l.example/x.svg","brandName":{"default":"Kabul Grand"}}`,
				r.PathValue("id"))
		},
		"property": func(w http.ResponseWriter, r *http.Request) {
			property := r.PathValue("id")
			fmt.Fprintf(w, `{"propertyId":%q,"tenantId":%q,"tenantSlug":"old-name","name":{"default":"Kabul Grand"},"city":"Kabul","country":"AF","geo":{"lat":34.5,"lng":69.2},"rooms":[],"amenities":[],"photos":[],"policies":{"cancellation":"","checkIn":"","checkOut":""}}`,
				property, "tnt_"+property[len("ppt_"):])
		},
	})
}
