package wishlist

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
	"melmastoon.ghasi.io/bff-consumer/shared/setup"
	"melmastoon.ghasi.io/bff-consumer/shared/stores"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const (
	firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	iphone  = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1"
)

// house is the functions of this module with real stores, which tests take away, a clock that tests move and upstreams
// that tests command.
type house struct {
	t     testing.TB
	parts *setup.Parts
	up    *upstreams
	redis *redistest.Redis
	pg    *stores.Proxy
	trips *redistest.Counter
	log   lockedBuffer
	time  atomic.Int64
	mux   *http.ServeMux
}

func newHouse(t testing.TB) *house {
	t.Helper()
	database, proxy := pgtest.Behind(t)
	h := &house{t: t, up: newUpstreams(t), redis: redistest.Server(t), pg: proxy, mux: http.NewServeMux()}
	h.time.Store(time.Now().UnixMilli())
	flags := t.TempDir() + "/flags.json"
	if err := os.WriteFile(flags, []byte(`{"limitsEnabled":false,"botMode":"off"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	h.parts, err = setup.Build(context.Background(), setup.Environment{
		Env: "test", Region: "asia-south1", RedisAddr: h.redis.Addr, DatabaseURL: database, DBMaxConns: 8,
		SearchURL: h.up.URL, PricingURL: h.up.URL, PropertyURL: h.up.URL, ThemeURL: h.up.URL,
		UpstreamAuth: "none", FlagsFile: flags, SessionKeys: ring(t), Peppers: ring(t),
	}, h.now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.parts.DB.Close)
	t.Cleanup(h.pg.Heal)
	h.trips = redistest.Count(h.parts.Redis)
	for pattern, handler := range routes(h.parts) {
		h.mount(pattern, handler)
	}
	return h
}

func ring(t testing.TB) keyring.Ring {
	t.Helper()
	r, err := keyring.Parse("test:QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (h *house) now() time.Time { return time.UnixMilli(h.time.Load()).UTC() }

func (h *house) advance(d time.Duration) { h.time.Add(d.Milliseconds()) }

var number atomic.Int64 // makes the names of functions under test unique in the registry

func (h *house) mount(pattern string, handler web.Handler) {
	name := fmt.Sprintf("Test%d", number.Add(1))
	web.Open(name, pattern, func(context.Context) (web.Handler, error) { return handler, nil })
	for _, f := range web.Functions() {
		if f.Name == name {
			if err := f.OpenTo(context.Background(), &h.log); err != nil {
				h.t.Fatal(err)
			}
			h.mux.Handle(pattern, f)
		}
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// answer is what a client got.
type answer struct {
	*http.Response
	body []byte
	refusal
}

type refusal struct {
	Code   string
	Errors []struct{ Field, Code, Detail string }
}

func (a *answer) cookie() string {
	for _, c := range a.Cookies() {
		if c.Name == "gms_id" {
			return c.Value
		}
	}
	return ""
}

func (a *answer) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
}

// do sends a request through the pipeline, as the guest of cookie, and holds the answer against the API description. It
// may be called by several at once.
func (h *house) do(method, path, cookie, body string, headers ...string) *answer {
	r := httptest.NewRequest(method, web.Base+path, strings.NewReader(body))
	if method == "POST" && body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("User-Agent", firefox)
	if cookie != "" {
		r.Header.Set("Cookie", "gms_id="+cookie)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.mux.ServeHTTP(w, r)
	a := &answer{Response: w.Result(), body: w.Body.Bytes()}
	h.conforms(r, a)
	if a.StatusCode >= 400 {
		if err := json.Unmarshal(a.body, &a.refusal); err != nil {
			h.t.Errorf("%s %s: %v in %s", method, path, err, a.body)
		}
		if a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("Set-Cookie") != "" {
			h.t.Errorf("a refusal with %v", a.Header)
		}
	} else if a.Header.Get("Cache-Control") != "private, no-store" {
		h.t.Errorf("a personal answer with %v", a.Header)
	}
	return a
}

// must is do for what must be answered with that status.
func (h *house) must(status int, method, path, cookie, body string, headers ...string) *answer {
	h.t.Helper()
	a := h.do(method, path, cookie, body, headers...)
	if a.StatusCode != status {
		h.t.Fatalf("%s %s: %d %s", method, path, a.StatusCode, a.body)
	}
	return a
}

var api = sync.OnceValues(func() (routers.Router, error) {
	doc, err := openapi3.NewLoader().LoadFromFile("../../api/consumer.openapi.yaml")
	if err != nil {
		return nil, err
	}
	return gorillamux.NewRouter(doc)
})

func (h *house) conforms(r *http.Request, a *answer) {
	router, err := api()
	if err != nil {
		h.t.Error(err)
		return
	}
	route, params, err := router.FindRoute(r)
	if err != nil {
		h.t.Errorf("%s is not in the API: %v", r.URL, err)
		return
	}
	err = openapi3filter.ValidateResponse(context.Background(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, Route: route, PathParams: params},
		Status:                 a.StatusCode, Header: a.Header, Body: io.NopCloser(bytes.NewReader(a.body)),
		Options: &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		h.t.Errorf("the answer breaks the API description: %v\n%s", err, a.body)
	}
}

// events are the messages of that subject in the outbox, in the order they were written, each held against its schema;
// "" for all.
func (h *house) events(subject string) []event.Event {
	h.t.Helper()
	rows, _ := h.parts.DB.Query(context.Background(), `
		SELECT payload
		FROM bff_consumer.outbox
		WHERE topic LIKE '%.' || $1 || '%'
		ORDER BY created_at, id`, subject)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (e event.Event, err error) {
		var message []byte
		if err = row.Scan(&message); err == nil {
			err = e.UnmarshalJSON(message)
		}
		return e, err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	for _, e := range all {
		if err := event.Validate(e); err != nil {
			h.t.Errorf("%v in %+v", err, e.Payload)
		}
	}
	return all
}

// count is the number of rows of a query.
func (h *house) count(query string, args ...any) (n int) {
	h.t.Helper()
	if err := h.parts.DB.QueryRow(context.Background(), "SELECT count(*) FROM bff_consumer."+query, args...).Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// eventually waits for what the stores do in their own time.
func (h *house) eventually(what string, is func() bool) {
	h.t.Helper()
	deadline := time.After(15 * time.Second)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			h.t.Fatalf("never: %s", what)
		}
	}
}

func propertyID(n int) string { return fmt.Sprintf("ppt_%026d", n) }
func tenantID(n int) string   { return fmt.Sprintf("tnt_%026d", n%7) }

// late is what a machine busy with other tests may add to an answer that comes at the end of its budget; one that hung
// would not come at all.
const late = 3 * time.Second
