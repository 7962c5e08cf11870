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

// kinds are the calls that upstreams get: a name, the service that answers it, and its route. The id in the route is
// r.PathValue("id").
var kinds = map[string]struct{ service, route string }{
	"queries":      {"search", "POST /api/v1/search/queries"},
	"facets":       {"search", "GET /api/v1/search/facets"},
	"hotel":        {"search", "GET /api/v1/search/hotels/{id}"},
	"availability": {"search", "GET /api/v1/search/hotels/{id}/availability"},
	"pricing":      {"pricing", "POST /v1/pricing/quotes/preview"},
	"property":     {"property", "GET /api/v1/properties/{id}"},
	"theme":        {"theme", "GET /theme-config/v1/tenants/{id}/brand-peek"},
}

// Answers are what upstreams say to each kind of call: queries, facets, hotel, availability, pricing, property or
// theme. A handler runs alone and sees the truth as it was when it was asked.
type Answers map[string]http.HandlerFunc

// Upstreams stand in for search-aggregation (by name: search), pricing, property-service (property) and theme-config
// (theme), at one address. They count their calls and misbehave as they are told.
type Upstreams struct {
	*httptest.Server
	answers Answers

	mu    sync.Mutex
	how   map[string]manner // by service, or by the id that is asked for
	held  map[string]hold   // by service
	calls map[string]int    // by kind
	heard http.Header
}

type manner int

const (
	fails manner = iota + 1
	hangs
	knowsNothing
)

type hold struct{ arrived, letGo chan struct{} }

// NewUpstreams starts the stand-ins. A brand is known of every tenant when answers have no theme.
func NewUpstreams(t testing.TB, answers Answers) *Upstreams {
	t.Helper()
	u := &Upstreams{answers: Answers{"theme": brand}, how: map[string]manner{}, held: map[string]hold{}, calls: map[string]int{}}
	for kind, answer := range answers {
		if _, known := kinds[kind]; !known {
			t.Fatalf("functest: no call is %s", kind)
		}
		u.answers[kind] = answer
	}
	mux := http.NewServeMux()
	for kind, k := range kinds {
		mux.HandleFunc(k.route, func(w http.ResponseWriter, r *http.Request) { u.serve(kind, w, r) })
	}
	u.Server = httptest.NewServer(mux)
	t.Cleanup(u.Close)
	return u
}

func brand(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, `{"tenantId":%q,"tenantSlug":"slug","primaryColor":"#aabbcc","logoUrl":"https://logo.example/x.svg","brandName":{"default":"Brand"}}`,
		r.PathValue("id"))
}

// Fail lets a service answer 500.
func (u *Upstreams) Fail(service string) { u.behave(service, fails) }

// Hang lets a service never answer.
func (u *Upstreams) Hang(service string) { u.behave(service, hangs) }

// NotKnow lets a service answer 404, or everybody who is asked for an id.
func (u *Upstreams) NotKnow(serviceOrID string) { u.behave(serviceOrID, knowsNothing) }

// Recover ends what Fail, Hang and NotKnow began.
func (u *Upstreams) Recover(serviceOrID string) { u.behave(serviceOrID, 0) }

func (u *Upstreams) behave(who string, m manner) { u.Change(func() { u.how[who] = m }) }

// Change changes the truth, between calls.
func (u *Upstreams) Change(truth func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	truth()
}

// Hold lets a service read its truth at once, say so, and answer when let go.
func (u *Upstreams) Hold(service string) (arrived <-chan struct{}, letGo func()) {
	h := hold{make(chan struct{}, 64), make(chan struct{})}
	u.Change(func() { u.held[service] = h })
	return h.arrived, func() {
		u.Change(func() { delete(u.held, service) })
		close(h.letGo)
	}
}

// Calls is how many calls of these kinds were answered, refusals to know among them; of all kinds when none is named.
func (u *Upstreams) Calls(of ...string) (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(of) == 0 {
		for kind := range kinds {
			n += u.calls[kind]
		}
	}
	for _, kind := range of {
		if _, known := kinds[kind]; !known {
			panic("functest: no call is " + kind)
		}
		n += u.calls[kind]
	}
	return n
}

// Heard is the headers of the last call.
func (u *Upstreams) Heard() http.Header {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.heard
}

func (u *Upstreams) serve(kind string, w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // the server notices that a client left only once the body is read
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer, h := u.answer(kind, r)
	if answer == nil {
		<-r.Context().Done()
		return
	}
	if h.letGo != nil {
		h.arrived <- struct{}{}
		<-h.letGo
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes())
}

// answer is what is true now, or nil for a service that hangs.
func (u *Upstreams) answer(kind string, r *http.Request) (*httptest.ResponseRecorder, hold) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.heard = r.Header
	service := kinds[kind].service
	how := u.how[service]
	if of := r.PathValue("id"); how == 0 && of != "" {
		how = u.how[of]
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case how == hangs:
		return nil, hold{}
	case how == fails:
		w.WriteHeader(http.StatusInternalServerError)
		return w, hold{}
	case how == knowsNothing || u.answers[kind] == nil:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"title":"Not Found","status":404}`)
	default:
		u.answers[kind](w, r)
	}
	u.calls[kind]++
	return w, u.held[service]
}
