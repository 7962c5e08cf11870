package detail

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
	name                  string // of the hotel
	price                 int
	soldOut               bool
	booked                int
	viewed                int
	capturedAt            func() time.Time
	lastQuoteRequest      map[string]any // the last request to pricing
	lastAvailabilityQuery string         // the last query string of availability
}

const kabulPropertyID = "ppt_00000000000000000000000001"

// tenantID is the tenant of the n-th hotel. Hotels 1 and 6 have the same tenant.
func tenantID(n int) string   { return functest.TenantID(n % 5) }
func propertyID(n int) string { return functest.PropertyID(n) }

func newUpstreams(t testing.TB, now func() time.Time) *upstreams {
	u := &upstreams{name: "Hotel One", price: 450000, booked: 12, viewed: 80, capturedAt: now}
	u.Upstreams = functest.NewUpstreams(t, functest.UpstreamHandlers{
		"hotel": u.answerHotel, "availability": u.answerAvailability, "pricing": u.answerPricing, "property": u.answerProperty,
	})
	return u
}

func hitJSON(n int, name string) string {
	return fmt.Sprintf(`{"propertyId":%q,"tenantId":%q,"tenantSlug":"slug-%d","name":{"default":%q,"localized":{"ps-AF":"هوټل"}},`+
		`"city":"Kabul","country":"AF","geo":{"lat":34.5,"lng":69.2},"thumbnail":{"url":"https://img.example/%d.jpg","alt":"front"},`+
		`"starRating":4,"guestRating":{"value":8.5,"count":120},"amenityHighlights":["wifi"],"badges":["shariaCompliant"],"servingRegion":"europe-west1"}`,
		propertyID(n), tenantID(n), n, name, n)
}

func (u *upstreams) answerAvailability(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	u.lastAvailabilityQuery = r.URL.RawQuery
	fmt.Fprintf(w, `{"days":[{"date":%q,"available":true,"roomsLeft":3,"cheapestMinor":"%d","currency":"AFN"},{"date":%q,"available":false,"roomsLeft":0}]}`,
		q.Get("from"), u.price, q.Get("to"))
}

func (u *upstreams) answerHotel(w http.ResponseWriter, _ *http.Request) {
	var similar []string
	for n := 2; n <= 5; n++ {
		similar = append(similar, hitJSON(n, fmt.Sprintf("Hotel %d", n)))
	}
	fmt.Fprintf(w, `{"hit":%s,"popularity":{"bookedLast24h":%d,"viewedLast1h":%d},"reviewSummary":{"value":8.5,"count":120},"similar":[%s]}`,
		hitJSON(1, u.name), u.booked, u.viewed, strings.Join(similar, ","))
}

func (u *upstreams) answerPricing(w http.ResponseWriter, r *http.Request) {
	u.lastQuoteRequest = nil
	if err := json.NewDecoder(r.Body).Decode(&u.lastQuoteRequest); err != nil || u.soldOut {
		fmt.Fprint(w, `{"quotes":[]}`)
		return
	}
	at := u.capturedAt().UTC()
	from, _ := time.Parse(time.DateOnly, u.lastQuoteRequest["calendar"].(map[string]any)["from"].(string))
	currency := u.lastQuoteRequest["currency"].(string)
	var calendar []string
	for n := range 7 {
		calendar = append(calendar, fmt.Sprintf(`{"date":%q,"cheapestMinor":"%d","currency":%q}`, from.AddDate(0, 0, n).Format(time.DateOnly), u.price+n, currency))
	}
	const ms = "2006-01-02T15:04:05.000Z"
	fmt.Fprintf(w, `{"quotes":[{"propertyId":%q,"cheapestNightlyMinor":"%d","totalForStayMinor":"%d","currency":%q,"currencyDisplayPolicy":"user-preferred",`+
		`"capturedAt":%q,"ttlExpiresAt":%q,"calendar":[%s]}]}`, kabulPropertyID, u.price, u.price, currency, at.Format(ms), at.Add(time.Minute).Format(ms), strings.Join(calendar, ","))
}

func (u *upstreams) answerProperty(w http.ResponseWriter, r *http.Request) {
	if r.PathValue("id") != kabulPropertyID {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"title":"Not Found","status":404}`)
		return
	}
	fmt.Fprintf(w, `{"propertyId":%q,"tenantId":%q,"tenantSlug":"slug-1","name":{"default":%q,"localized":{"fa-AF":"هتل"}},"city":"Kabul","country":"AF",`+
		`"geo":{"lat":34.5,"lng":69.2},"address":"Street 1","starRating":4,"description":"In %s.",`+
		`"rooms":[{"roomTypeId":"rmt_1","name":"Double","maxOccupancy":2,"beds":"1 king","sizeSqm":20,"photos":[{"url":"https://img.example/r.jpg","alt":""}]}],`+
		`"amenities":[{"code":"wifi","label":"Wi-Fi","category":"connectivity"}],`+
		`"photos":[{"url":"https://img.example/hero.jpg","alt":"front","isHero":true},{"url":"https://img.example/2.jpg","alt":"","isHero":false}],`+
		`"policies":{"cancellation":"Free until the day before.","checkIn":"From 14:00","checkOut":"Until 11:00"}}`,
		kabulPropertyID, tenantID(1), u.name, r.URL.Query().Get("locale"))
}
