package search

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

// upstreams are the fake upstream services and the data they serve.
type upstreams struct {
	*functest.Upstreams
	hits         int
	extraMembers string // further members of the answer of search-aggregation
	capturedAt   func() time.Time
	price        int
	colour       string         // of every brand
	lastQuery    map[string]any // the last request to search-aggregation
}

func newUpstreams(t testing.TB) *upstreams {
	u := &upstreams{hits: 3, capturedAt: time.Now, price: 450000, colour: "#aabbcc"}
	u.Upstreams = functest.NewUpstreams(t, functest.UpstreamHandlers{
		"queries": u.answerSearch, "facets": u.answerFacets, "pricing": u.answerPricing, "theme": u.answerTheme,
	})
	return u
}

func propertyID(n int) string { return functest.PropertyID(n) }
func tenantID(n int) string   { return functest.TenantID(n % 7) }

func (u *upstreams) answerFacets(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("country") != "AF" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	fmt.Fprintf(w, `{"country":"AF","facets":[{"key":"amenities","values":[{"value":"wifi","label":"wifi (%s)","count":3}]}]}`, r.URL.Query().Get("locale"))
}

func (u *upstreams) answerSearch(w http.ResponseWriter, r *http.Request) {
	var q map[string]any
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	u.lastQuery = q
	var hits []string
	for n := range u.hits {
		hits = append(hits, fmt.Sprintf(`{"propertyId":%q,"tenantId":%q,"tenantSlug":"slug-%d","name":{"default":"Hotel %d","localized":{"ps-AF":"هوټل"}},`+
			`"city":"Kabul","country":"AF","geo":{"lat":34.5,"lng":69.2},"thumbnail":{"url":"https://img.example/%d.jpg","alt":"front"},`+
			`"starRating":4,"guestRating":{"value":8.5,"count":120},"amenityHighlights":["wifi","parking"],"badges":["shariaCompliant"],"servingRegion":"europe-west1"}`,
			propertyID(n), tenantID(n), n, n, n))
	}
	fmt.Fprintf(w, `{"resultCount":%d,"place":{"city":"Kabul","country":"AF"},"coverage":["h3:842f2cdffffffff"],"hits":[%s]%s}`, u.hits+27, strings.Join(hits, ","), u.extraMembers)
}

func (u *upstreams) answerPricing(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Properties []struct{ PropertyID string }
		Currency   string
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	at := u.capturedAt().UTC()
	var quotes []string
	for n, p := range q.Properties {
		quotes = append(quotes, fmt.Sprintf(`{"propertyId":%q,"cheapestNightlyMinor":"%d","totalForStayMinor":"%d","currency":%q,`+
			`"currencyDisplayPolicy":"user-preferred","capturedAt":%q,"ttlExpiresAt":%q}`, p.PropertyID, u.price+n, 3*(u.price+n), q.Currency,
			at.Format("2006-01-02T15:04:05.000Z"), at.Add(time.Minute).Format("2006-01-02T15:04:05.000Z")))
	}
	fmt.Fprintf(w, `{"quotes":[%s]}`, strings.Join(quotes, ","))
}

func (u *upstreams) answerTheme(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, `{"tenantId":%q,"tenantSlug":"slug","primaryColor":%q,"logoUrl":"https://logo.example/x.svg","brandName":{"default":"Brand"}}`,
		r.PathValue("id"), u.colour)
}
