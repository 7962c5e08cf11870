package search

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
	search, pricing, theme *httptest.Server
	searches, quotes, peeks,
	facets atomic.Int64

	mu       sync.Mutex
	hits     int
	failing  map[string]bool
	hanging  map[string]bool
	held     map[string]chan struct{} // by service: answers wait until it is closed
	arrived  chan string
	extra    string // further members of a search's answer
	captured func() time.Time
	price    int
	colour   string         // of every brand
	last     map[string]any // the last query search-aggregation was asked
}

func newUpstreams(t testing.TB) *upstreams {
	u := &upstreams{hits: 3, failing: map[string]bool{}, hanging: map[string]bool{}, held: map[string]chan struct{}{}, captured: time.Now, price: 450000, colour: "#aabbcc"}
	serve := func(name string, handler http.HandlerFunc) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			u.mu.Lock()
			failing, hanging, held, arrived := u.failing[name], u.hanging[name], u.held[name], u.arrived
			u.mu.Unlock()
			switch {
			case hanging:
				io.Copy(io.Discard, r.Body) // the server notices that a client left only once the body is read
				<-r.Context().Done()
			case failing:
				w.WriteHeader(http.StatusInternalServerError)
			case held != nil:
				truth := httptest.NewRecorder()
				handler(truth, r) // what is true when it was asked
				arrived <- name
				<-held
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(truth.Body.Bytes())
			default:
				w.Header().Set("Content-Type", "application/json")
				handler(w, r)
			}
		}))
		t.Cleanup(s.Close)
		return s
	}
	u.search = serve("search", u.answerSearch)
	u.pricing = serve("pricing", u.answerPricing)
	u.theme = serve("theme", u.answerTheme)
	return u
}

// command changes how the upstreams behave.
func (u *upstreams) command(change func(*upstreams)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(u)
}

// hold lets a service read its truth at once and answer when let go.
func (u *upstreams) hold(name string) (arrived <-chan string, letGo func()) {
	held, calls := make(chan struct{}), make(chan string, 100)
	u.command(func(u *upstreams) { u.held[name], u.arrived = held, calls })
	return calls, func() {
		u.command(func(u *upstreams) { delete(u.held, name) })
		close(held)
	}
}

func propertyID(n int) string { return fmt.Sprintf("ppt_%026d", n) }
func tenantID(n int) string   { return fmt.Sprintf("tnt_%026d", n%7) }

func (u *upstreams) answerSearch(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/facets") {
		u.facets.Add(1)
		if r.URL.Query().Get("country") != "AF" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		fmt.Fprintf(w, `{"country":"AF","facets":[{"key":"amenities","values":[{"value":"wifi","label":"wifi (%s)","count":3}]}]}`, r.URL.Query().Get("locale"))
		return
	}
	u.searches.Add(1)
	var q map[string]any
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last = q
	var hits []string
	for n := range u.hits {
		hits = append(hits, fmt.Sprintf(`{"propertyId":%q,"tenantId":%q,"tenantSlug":"slug-%d","name":{"default":"Hotel %d","localized":{"ps-AF":"هوټل"}},`+
			`"city":"Kabul","country":"AF","geo":{"lat":34.5,"lng":69.2},"thumbnail":{"url":"https://img.example/%d.jpg","alt":"front"},`+
			`"starRating":4,"guestRating":{"value":8.5,"count":120},"amenityHighlights":["wifi","parking"],"badges":["shariaCompliant"],"servingRegion":"europe-west1"}`,
			propertyID(n), tenantID(n), n, n, n))
	}
	fmt.Fprintf(w, `{"resultCount":%d,"place":{"city":"Kabul","country":"AF"},"coverage":["h3:842f2cdffffffff"],"hits":[%s]%s}`, u.hits+27, strings.Join(hits, ","), u.extra)
}

func (u *upstreams) answerPricing(w http.ResponseWriter, r *http.Request) {
	u.quotes.Add(1)
	var q struct {
		Properties []struct{ PropertyID string }
		Currency   string
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	at := u.captured().UTC()
	var quotes []string
	for n, p := range q.Properties {
		quotes = append(quotes, fmt.Sprintf(`{"propertyId":%q,"cheapestNightlyMinor":"%d","totalForStayMinor":"%d","currency":%q,`+
			`"currencyDisplayPolicy":"user-preferred","capturedAt":%q,"ttlExpiresAt":%q}`, p.PropertyID, u.price+n, 3*(u.price+n), q.Currency,
			at.Format("2006-01-02T15:04:05.000Z"), at.Add(time.Minute).Format("2006-01-02T15:04:05.000Z")))
	}
	fmt.Fprintf(w, `{"quotes":[%s]}`, strings.Join(quotes, ","))
}

func (u *upstreams) answerTheme(w http.ResponseWriter, r *http.Request) {
	u.peeks.Add(1)
	u.mu.Lock()
	colour := u.colour
	u.mu.Unlock()
	tenant := strings.Split(r.URL.Path, "/")[4]
	fmt.Fprintf(w, `{"tenantId":%q,"tenantSlug":"slug","primaryColor":%q,"logoUrl":"https://logo.example/x.svg","brandName":{"default":"Brand"}}`, tenant, colour)
}

// calls is how many calls all of them got.
func (u *upstreams) calls() int64 {
	return u.searches.Load() + u.quotes.Load() + u.peeks.Load() + u.facets.Load()
}
