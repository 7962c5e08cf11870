package functest

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// recordingTB records the failures that a Harness reports about a fabricated response.
type recordingTB struct {
	testing.TB
	failures []string
}

func (v *recordingTB) Helper()           {}
func (v *recordingTB) Error(args ...any) { v.failures = append(v.failures, fmt.Sprint(args...)) }
func (v *recordingTB) Errorf(format string, args ...any) {
	v.failures = append(v.failures, fmt.Sprintf(format, args...))
}

// writeFacets is an answer as the API describes it.
func writeFacets(w http.ResponseWriter, cache string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", cache)
	io.WriteString(w, `{"country":"AF","facets":[]}`)
}

func TestHarnessSend_ChecksEveryResponse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method   string
		personal bool
		handler  web.Handler
		want     string // "" for nothing
	}{
		"as described": {"GET", false, func(w http.ResponseWriter, _ *http.Request) error {
			writeFacets(w, "public, max-age=15")
			return nil
		}, ""},
		"a refusal": {"GET", false, func(http.ResponseWriter, *http.Request) error {
			return problem.New(problem.ResourceNotFound, "No such country.", nil)
		}, ""},
		"HEAD": {"HEAD", false, func(w http.ResponseWriter, _ *http.Request) error {
			writeFacets(w, "public, max-age=15")
			return nil
		}, ""},
		"a method that is nobody's": {"PUT", false, func(w http.ResponseWriter, _ *http.Request) error {
			return nil
		}, ""},
		"a body that is not described": {"GET", false, func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"country":7}`)
			return nil
		}, "does not match the OpenAPI document"},
		"a status that is not described": {"GET", false, func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusTeapot)
			return nil
		}, "does not match the OpenAPI document"},
		"a refusal that is kept": {"GET", false, func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Type", "application/problem+json")
			w.Header().Set("Cache-Control", "public")
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"code":"X"}`)
			return nil
		}, "an error response with"},
		"a shared answer where it is to be personal": {"GET", true, func(w http.ResponseWriter, _ *http.Request) error {
			writeFacets(w, "public, max-age=15")
			return nil
		}, "a personal response with"},
	} {
		v := &recordingTB{TB: t}
		h := &Harness{T: v, Log: &Log{}, APIDocument: "../../../api/consumer.openapi.yaml", BasePath: web.BasePath, Personal: c.personal, functions: map[string]*web.Function{}}
		h.Mount("GET "+web.BasePath+"/facets", c.handler)
		h.Do(c.method, "/facets", "", "")
		if said := strings.Join(v.failures, "\n"); (said == "") != (c.want == "") || !strings.Contains(said, c.want) {
			t.Errorf("%s: said %q, want %q", name, said, c.want)
		}
	}
}

func TestHarnessSend_FailsForUndescribedRoute(t *testing.T) {
	t.Parallel()
	v := &recordingTB{TB: t}
	h := &Harness{T: v, Log: &Log{}, APIDocument: "../../../api/consumer.openapi.yaml", functions: map[string]*web.Function{}}
	h.Mount("GET /elsewhere", func(http.ResponseWriter, *http.Request) error { return nil })
	h.Do("GET", "/elsewhere", "", "")
	if len(v.failures) != 1 || !strings.Contains(v.failures[0], "is not in the OpenAPI document") {
		t.Errorf("%q", v.failures)
	}
	h.APIDocument = ""
	if h.Do("GET", "/elsewhere", "", ""); len(v.failures) != 1 {
		t.Errorf("%q", v.failures)
	}
}

func TestHarnessDo_SetsBrowserHeaders(t *testing.T) {
	t.Parallel()
	h := &Harness{T: t, Log: &Log{}, functions: map[string]*web.Function{}}
	var got http.Header
	h.Mount("POST /x", func(_ http.ResponseWriter, r *http.Request) error { got = r.Header; return nil })
	h.Do("POST", "/x", "gms_1", "{}", "X-Currency", "AFN", "If-None-Match", "")
	for name, want := range map[string]string{"User-Agent": Firefox, "Content-Type": "application/json", "Cookie": "gms_id=gms_1", "X-Currency": "AFN"} {
		if got.Get(name) != want {
			t.Errorf("%s: %q", name, got.Get(name))
		}
	}
	if _, sent := got["If-None-Match"]; !sent {
		t.Error("a header that no browser sends by itself may be empty")
	}
	h.Do("POST", "/x", "gms_1", "{}", "User-Agent", "", "Content-Type", "", "Cookie", "")
	for _, name := range []string{"User-Agent", "Content-Type", "Cookie"} {
		if _, sent := got[name]; sent {
			t.Errorf("%s was sent", name)
		}
	}
}

func TestHarness_HasIsolatedStores(t *testing.T) {
	t.Parallel()
	h, other := NewWithProxy(t), New(t)
	h.BuildDeps(Environment(t, h.Database, h.Redis.Addr, UnreachableURL))
	beside := h.NewInstance()
	beside.BuildDeps(Environment(t, beside.Database, beside.Redis.Addr, UnreachableURL))
	h.Suspend(TenantID(1))
	if n, m := h.Count("tenant_suspended_cache"), other.Count("tenant_suspended_cache"); n != 1 || m != 0 {
		t.Errorf("%d here, %d elsewhere", n, m)
	}
	h.PostgresProxy.Break()
	if err := h.Deps.DB.Ping(t.Context()); err == nil {
		t.Error("the function reaches the database")
	}
	if n := h.Count("tenant_suspended_cache"); n != 1 {
		t.Errorf("the test sees %d", n)
	}
	before := h.Now()
	h.Advance(time.Minute)
	if beside.Now().Sub(before) != time.Minute {
		t.Error("an instance beside has another time")
	}
}

func TestHarnessMessages_ValidatesSchemas(t *testing.T) {
	t.Parallel()
	h := New(t)
	const guest = "gms_01ARZ3NDEKTSV4RRFFQ69G5FAV"
	var b pgx.Batch
	for _, to := range []string{"ps-AF", "fa-AF"} {
		e := event.New(event.Meta{SessionID: guest, Now: h.Now()}, event.LocaleChanged{
			GuestSessionID: guest, PreviousLocale: "en", NewLocale: to, Trigger: "user-explicit", OccurredAt: h.Now(),
		})
		if err := outbox.Queue(&b, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.DB.SendBatch(t.Context(), &b).Close(); err != nil {
		t.Fatal(err)
	}
	for subject, want := range map[string]int{"": 2, "locale.changed": 2, "locale.": 2, "melmastoon.bff.consumer.locale.changed.v1": 2, "changed": 2, "currency": 0, "ocale": 0} {
		if n := len(h.Events(subject)); n != want {
			t.Errorf("%q: %d events", subject, n)
		}
	}
	h.Exec(`UPDATE bff_consumer.outbox SET payload = jsonb_set(payload, '{payload,newLocale}', '7')`)
	v := &recordingTB{TB: t}
	h.T = v
	if h.Messages(""); len(v.failures) != 2 {
		t.Errorf("%q", v.failures)
	}
}

func TestUpstreams_InjectFaults(t *testing.T) {
	t.Parallel()
	name := "old"
	u := NewUpstreams(t, UpstreamHandlers{"hotel": func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, name) }})
	get := func(path string) string {
		res, err := http.Get(u.URL + path)
		if err != nil {
			t.Error(err)
			return ""
		}
		defer res.Body.Close()
		body, _ := io.ReadAll(res.Body)
		return fmt.Sprint(res.StatusCode, " ", string(body))
	}
	hotel, theme := "/api/v1/search/hotels/"+PropertyID(1), "/theme-config/v1/tenants/"+TenantID(1)+"/brand-peek"
	for _, c := range []struct {
		what string
		do   func()
		path string
		want string
	}{
		{"healthy", func() {}, hotel, "200 old"},
		{"failing", func() { u.Fail("search") }, hotel, "500 "},
		{"another service", func() {}, theme, "200 {"},
		{"ignorant of one", func() { u.Recover("search"); u.NotFound(PropertyID(1)) }, hotel, "404 {"},
		{"healthy again", func() { u.Recover(PropertyID(1)) }, hotel, "200 old"},
		{"without an answer", func() {}, "/api/v1/search/facets", "404 {"},
	} {
		c.do()
		if got := get(c.path); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s", c.what, got)
		}
	}
	if n, all := u.Calls("hotel"), u.Calls(); n != 3 || all != 5 {
		t.Errorf("%d calls for a hotel, %d in all", n, all)
	}
	arrived, letGo := u.Pause("search")
	got := make(chan string)
	go func() { got <- get(hotel) }()
	<-arrived
	u.Update(func() { name = "new" })
	letGo()
	if answer := <-got; answer != "200 old" {
		t.Errorf("who was held up says %s", answer)
	}
	if answer := get(hotel); answer != "200 new" {
		t.Errorf("afterwards: %s", answer)
	}
}
