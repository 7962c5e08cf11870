package wishlist

import (
	"fmt"
	"net/http"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

// newUpstreams starts fake upstreams that know every hotel. The tenant of hotel n is n modulo 7.
func newUpstreams(t testing.TB) *functest.Upstreams {
	return functest.NewUpstreams(t, functest.UpstreamHandlers{"hotel": func(w http.ResponseWriter, r *http.Request) {
		var n int
		fmt.Sscanf(r.PathValue("id"), "ppt_%d", &n)
		hit := fmt.Sprintf(`{"propertyId":%q,"tenantId":%q,"tenantSlug":"slug-%d","name":{"default":"Hotel %d (%s)"},"city":"Kabul","country":"AF",`+
			`"geo":{"lat":34.5,"lng":69.2},"thumbnail":{"url":"https://img.example/%d.jpg","alt":"front"},"starRating":4,`+
			`"guestRating":{"value":8.5,"count":120},"amenityHighlights":["wifi"],"badges":["newProperty"],"servingRegion":"asia-south1"}`,
			propertyID(n), tenantID(n), n, n, r.URL.Query().Get("locale"), n)
		fmt.Fprintf(w, `{"hit":%s,"popularity":{"bookedLast24h":1,"viewedLast1h":2},"reviewSummary":{"value":8.5,"count":120},"similar":[]}`, hit)
	}})
}
