package functest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// upstreamCalls maps the kinds of upstream calls to services and routes. Handlers read the id of a
// route with r.PathValue("id").
var upstreamCalls = map[string]struct{ service, route string }{
	"queries":      {"search", "POST /api/v1/search/queries"},
	"facets":       {"search", "GET /api/v1/search/facets"},
	"hotel":        {"search", "GET /api/v1/search/hotels/{id}"},
	"availability": {"search", "GET /api/v1/search/hotels/{id}/availability"},
	"pricing":      {"pricing", "POST /v1/pricing/quotes/preview"},
	"property":     {"property", "GET /api/v1/properties/{id}"},
	"theme":        {"theme", "GET /theme-config/v1/tenants/{id}/brand-peek"},
}

// UpstreamHandlers are handlers by kind of call: queries, facets, hotel, availability, pricing,
// property or theme. Handlers never run concurrently, and never concurrently with Update.
type UpstreamHandlers map[string]http.HandlerFunc

// Upstreams is a fake of search-aggregation (service name: search), pricing, property-service
// (property) and theme-config (theme) at a single address. It counts calls and simulates faults.
// Safe for concurrent use.
type Upstreams struct {
	*httptest.Server
	handlers UpstreamHandlers

	mu         sync.Mutex
	faults     map[string]faultMode // by service or by the id in the route
	pauses     map[string]pause     // by service
	calls      map[string]int       // by kind
	lastHeader http.Header
}

type faultMode int

const (
	faultError faultMode = iota + 1
	faultHang
	faultNotFound
)

type pause struct{ arrived, release chan struct{} }

// NewUpstreams starts the fakes. Without a handler for theme, every tenant has a default brand.
func NewUpstreams(t testing.TB, answers UpstreamHandlers) *Upstreams {
	t.Helper()
	u := &Upstreams{handlers: UpstreamHandlers{"theme": defaultBrand}, faults: map[string]faultMode{}, pauses: map[string]pause{}, calls: map[string]int{}}
	for kind, answer := range answers {
		if _, known := upstreamCalls[kind]; !known {
			t.Fatalf("functest: unknown kind of call %s", kind)
		}
		u.handlers[kind] = answer
	}
	mux := http.NewServeMux()
	for kind, k := range upstreamCalls {
		mux.HandleFunc(k.route, func(w http.ResponseWriter, r *http.Request) { u.serve(kind, w, r) })
	}
	u.Server = httptest.NewServer(mux)
	t.Cleanup(u.Close)
	return u
}

func defaultBrand(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, `{"tenantId":%q,"tenantSlug":"slug","primaryColor":"#aabbcc","logoUrl":"https://logo.example/x.svg","brandName":{"default":"Brand"}}`,
		r.PathValue("id"))
}

// Fail makes a service answer 500.
func (u *Upstreams) Fail(service string) { u.setFault(service, faultError) }

// Hang makes a service never answer.
func (u *Upstreams) Hang(service string) { u.setFault(service, faultHang) }

// NotFound makes a service, or all services for an id, answer 404.
func (u *Upstreams) NotFound(serviceOrID string) { u.setFault(serviceOrID, faultNotFound) }

// Recover ends Fail, Hang and NotFound.
func (u *Upstreams) Recover(serviceOrID string) { u.setFault(serviceOrID, 0) }

func (u *Upstreams) setFault(serviceOrID string, m faultMode) {
	u.Update(func() { u.faults[serviceOrID] = m })
}

// Update runs change while no handler runs.
func (u *Upstreams) Update(change func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	change()
}

// Pause makes a service run its handler, report the call on arrived, and hold the response until
// release.
func (u *Upstreams) Pause(service string) (arrived <-chan struct{}, release func()) {
	h := pause{make(chan struct{}, 64), make(chan struct{})}
	u.Update(func() { u.pauses[service] = h })
	return h.arrived, func() {
		u.Update(func() { delete(u.pauses, service) })
		close(h.release)
	}
}

// Calls returns the number of answered calls of the given kinds, or of all kinds. It includes
// answers 404, but not those of Fail and Hang.
func (u *Upstreams) Calls(of ...string) (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(of) == 0 {
		for kind := range upstreamCalls {
			n += u.calls[kind]
		}
	}
	for _, kind := range of {
		if _, known := upstreamCalls[kind]; !known {
			panic("functest: unknown kind of call " + kind)
		}
		n += u.calls[kind]
	}
	return n
}

// LastHeader returns the headers of the last call.
func (u *Upstreams) LastHeader() http.Header {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.lastHeader
}

func (u *Upstreams) serve(kind string, w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // the server notices a lost client only after the body has been read
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer, h := u.respond(kind, r)
	if answer == nil {
		<-r.Context().Done()
		return
	}
	if h.release != nil {
		h.arrived <- struct{}{}
		<-h.release
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes())
}

// respond returns the response at this moment, or nil if the service hangs.
func (u *Upstreams) respond(kind string, r *http.Request) (*httptest.ResponseRecorder, pause) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lastHeader = r.Header
	service := upstreamCalls[kind].service
	how := u.faults[service]
	if of := r.PathValue("id"); how == 0 && of != "" {
		how = u.faults[of]
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case how == faultHang:
		return nil, pause{}
	case how == faultError:
		w.WriteHeader(http.StatusInternalServerError)
		return w, pause{}
	case how == faultNotFound || u.handlers[kind] == nil:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"title":"Not Found","status":404}`)
	default:
		u.handlers[kind](w, r)
	}
	u.calls[kind]++
	return w, u.pauses[service]
}
