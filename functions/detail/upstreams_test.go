package detail

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// upstreams are stand-ins for the services, each with a counter and a way to misbehave.
type upstreams struct {
	search, pricing, property, theme *httptest.Server

	hotels, days, quotes, properties, peeks atomic.Int64

	mu      sync.Mutex
	failing map[string]bool
	hanging map[string]bool
	unknown map[string]bool          // answers 404
	held    map[string]chan struct{} // answers only when this is closed
	arrived chan string              // the name of each service that is asked, when somebody listens

	name     string // of the hotel
	price    int
	soldOut  bool
	booked   int
	viewed   int
	captured func() time.Time
	quoted   map[string]any // the last question to pricing
	asked    string         // the last query string of availability
	headers  http.Header    // of the last call of any
}

const kabul = "ppt_00000000000000000000000001"

// tenantOf is whose the n-th hotel is: hotels 1 and 6 are of one tenant.
func tenantOf(n int) string   { return fmt.Sprintf("tnt_%026d", n%5) }
func propertyID(n int) string { return fmt.Sprintf("ppt_%026d", n) }

func newUpstreams(t testing.TB, now func() time.Time) *upstreams {
	u := &upstreams{
		failing: map[string]bool{}, hanging: map[string]bool{}, unknown: map[string]bool{}, held: map[string]chan struct{}{},
		name: "Hotel One", price: 450000, booked: 12, viewed: 80, captured: now,
	}
	serve := func(name string, handler http.HandlerFunc) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			u.mu.Lock()
			failing, hanging, unknown, held, arrived := u.failing[name], u.hanging[name], u.unknown[name], u.held[name], u.arrived
			u.headers = r.Header
			u.mu.Unlock()
			if arrived != nil {
				arrived <- name
			}
			w.Header().Set("Content-Type", "application/json")
			switch {
			case hanging:
				io.Copy(io.Discard, r.Body) // the server notices that a client left only once the body is read
				<-r.Context().Done()
			case failing:
				w.WriteHeader(http.StatusInternalServerError)
			case unknown:
				u.count(name, r)
				w.WriteHeader(http.StatusNotFound)
				fmt.Fprint(w, `{"title":"Not Found","status":404}`)
			default:
				u.count(name, r)
				var answer strings.Builder
				u.mu.Lock()
				handler(recorder{w, &answer}, r) // what is true when it was asked
				u.mu.Unlock()
				if held != nil {
					<-held
				}
				fmt.Fprint(w, answer.String())
			}
		}))
		t.Cleanup(s.Close)
		return s
	}
	u.search = serve("search", u.answerSearch)
	u.pricing = serve("pricing", u.answerPricing)
	u.property = serve("property", u.answerProperty)
	u.theme = serve("theme", u.answerTheme)
	return u
}

type recorder struct {
	http.ResponseWriter
	to io.Writer
}

func (r recorder) Write(p []byte) (int, error) { return r.to.Write(p) }

// command changes how the upstreams behave.
func (u *upstreams) command(change func(*upstreams)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(u)
}

func (u *upstreams) fail(name string)    { u.command(func(u *upstreams) { u.failing[name] = true }) }
func (u *upstreams) hang(name string)    { u.command(func(u *upstreams) { u.hanging[name] = true }) }
func (u *upstreams) notKnow(name string) { u.command(func(u *upstreams) { u.unknown[name] = true }) }
func (u *upstreams) recover(name string) {
	u.command(func(u *upstreams) { delete(u.failing, name); delete(u.hanging, name); delete(u.unknown, name) })
}

// hold lets a service read its truth at once and answer when let go.
func (u *upstreams) hold(name string) (arrived <-chan string, letGo func()) {
	held, calls := make(chan struct{}), make(chan string, 64)
	u.command(func(u *upstreams) { u.held[name], u.arrived = held, calls })
	return calls, func() {
		u.command(func(u *upstreams) { delete(u.held, name); u.arrived = nil })
		close(held)
	}
}

func (u *upstreams) count(name string, r *http.Request) {
	switch {
	case name == "search" && strings.HasSuffix(r.URL.Path, "/availability"):
		u.days.Add(1)
	case name == "search":
		u.hotels.Add(1)
	case name == "pricing":
		u.quotes.Add(1)
	case name == "property":
		u.properties.Add(1)
	case name == "theme":
		u.peeks.Add(1)
	}
}

// calls is how many calls all of them answered.
func (u *upstreams) calls() int64 {
	return u.hotels.Load() + u.days.Load() + u.quotes.Load() + u.properties.Load() + u.peeks.Load()
}

func hit(n int, name string) string {
	return fmt.Sprintf(`{"propertyId":%q,"tenantId":%q,"tenantSlug":"slug-%d","name":{"default":%q,"localized":{"ps-AF":"هوټل"}},`+
		`"city":"Kabul","country":"AF","geo":{"lat":34.5,"lng":69.2},"thumbnail":{"url":"https://img.example/%d.jpg","alt":"front"},`+
		`"starRating":4,"guestRating":{"value":8.5,"count":120},"amenityHighlights":["wifi"],"badges":["shariaCompliant"],"servingRegion":"europe-west1"}`,
		propertyID(n), tenantOf(n), n, name, n)
}

func (u *upstreams) answerSearch(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/availability") {
		q := r.URL.Query()
		u.asked = r.URL.RawQuery
		fmt.Fprintf(w, `{"days":[{"date":%q,"available":true,"roomsLeft":3,"cheapestMinor":"%d","currency":"AFN"},{"date":%q,"available":false,"roomsLeft":0}]}`,
			q.Get("from"), u.price, q.Get("to"))
		return
	}
	var similar []string
	for n := 2; n <= 5; n++ {
		similar = append(similar, hit(n, fmt.Sprintf("Hotel %d", n)))
	}
	fmt.Fprintf(w, `{"hit":%s,"popularity":{"bookedLast24h":%d,"viewedLast1h":%d},"reviewSummary":{"value":8.5,"count":120},"similar":[%s]}`,
		hit(1, u.name), u.booked, u.viewed, strings.Join(similar, ","))
}

func (u *upstreams) answerPricing(w http.ResponseWriter, r *http.Request) {
	u.quoted = nil
	if err := json.NewDecoder(r.Body).Decode(&u.quoted); err != nil || u.soldOut {
		fmt.Fprint(w, `{"quotes":[]}`)
		return
	}
	at := u.captured().UTC()
	from, _ := time.Parse(time.DateOnly, u.quoted["calendar"].(map[string]any)["from"].(string))
	currency := u.quoted["currency"].(string)
	var calendar []string
	for n := range 7 {
		calendar = append(calendar, fmt.Sprintf(`{"date":%q,"cheapestMinor":"%d","currency":%q}`, from.AddDate(0, 0, n).Format(time.DateOnly), u.price+n, currency))
	}
	const ms = "2006-01-02T15:04:05.000Z"
	fmt.Fprintf(w, `{"quotes":[{"propertyId":%q,"cheapestNightlyMinor":"%d","totalForStayMinor":"%d","currency":%q,"currencyDisplayPolicy":"user-preferred",`+
		`"capturedAt":%q,"ttlExpiresAt":%q,"calendar":[%s]}]}`, kabul, u.price, u.price, currency, at.Format(ms), at.Add(time.Minute).Format(ms), strings.Join(calendar, ","))
}

func (u *upstreams) answerProperty(w http.ResponseWriter, r *http.Request) {
	property := strings.TrimPrefix(r.URL.Path, "/api/v1/properties/")
	if property != kabul {
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
		kabul, tenantOf(1), u.name, r.URL.Query().Get("locale"))
}

func (u *upstreams) answerTheme(w http.ResponseWriter, r *http.Request) {
	tenant := strings.Split(r.URL.Path, "/")[4]
	fmt.Fprintf(w, `{"tenantId":%q,"tenantSlug":"slug","primaryColor":"#aabbcc","logoUrl":"https://logo.example/x.svg","brandName":{"default":"Brand"}}`, tenant)
}
