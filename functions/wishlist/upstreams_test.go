package wishlist

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// upstreams stands in for search-aggregation and theme-config, with counters and ways to misbehave.
type upstreams struct {
	*httptest.Server
	hotels, peeks atomic.Int64

	mu       sync.Mutex
	failing  map[string]bool
	hanging  map[string]bool
	unlisted map[string]bool
}

func newUpstreams(t testing.TB) *upstreams {
	u := &upstreams{failing: map[string]bool{}, hanging: map[string]bool{}, unlisted: map[string]bool{}}
	u.Server = httptest.NewServer(http.HandlerFunc(u.serve))
	t.Cleanup(u.Close)
	return u
}

func (u *upstreams) command(change func(*upstreams)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change(u)
}

func (u *upstreams) serve(w http.ResponseWriter, r *http.Request) {
	name := map[bool]string{true: "search", false: "theme"}[strings.HasPrefix(r.URL.Path, "/api/v1/search/")]
	parts := strings.Split(r.URL.Path, "/")
	u.mu.Lock()
	failing, hanging, unlisted := u.failing[name], u.hanging[name], u.unlisted[parts[len(parts)-1]]
	u.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case hanging:
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	case failing:
		w.WriteHeader(http.StatusInternalServerError)
	case unlisted:
		w.WriteHeader(http.StatusNotFound)
	case name == "theme":
		u.peeks.Add(1)
		fmt.Fprintf(w, `{"tenantId":%q,"tenantSlug":"slug","primaryColor":"#aabbcc","logoUrl":"https://logo.example/x.svg","brandName":{"default":"Brand"}}`, parts[4])
	default:
		u.hotels.Add(1)
		property := parts[len(parts)-1]
		var n int
		fmt.Sscanf(property, "ppt_%d", &n)
		hit := func(n int) string {
			return fmt.Sprintf(`{"propertyId":%q,"tenantId":%q,"tenantSlug":"slug-%d","name":{"default":"Hotel %d (%s)"},"city":"Kabul","country":"AF",`+
				`"geo":{"lat":34.5,"lng":69.2},"thumbnail":{"url":"https://img.example/%d.jpg","alt":"front"},"starRating":4,`+
				`"guestRating":{"value":8.5,"count":120},"amenityHighlights":["wifi"],"badges":["newProperty"],"servingRegion":"asia-south1"}`,
				propertyID(n), tenantID(n), n, n, r.URL.Query().Get("locale"), n)
		}
		fmt.Fprintf(w, `{"hit":%s,"popularity":{"bookedLast24h":1,"viewedLast1h":2},"reviewSummary":{"value":8.5,"count":120},"similar":[]}`, hit(n))
	}
}
