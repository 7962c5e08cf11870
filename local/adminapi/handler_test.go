package adminapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/local/requestlog"
	"melmastoon.ghasi.io/bff-consumer/local/sandbox"
	"melmastoon.ghasi.io/bff-consumer/shared/flags"
)

// harness is a Handler with the parts that tests change.
type harness struct {
	*Handler
	sandbox        *sandbox.Sandbox
	flags          string
	requestLogPath string // of the request log
	redisErr       error  // result of the ping of component "redis"
}

func newHarness(t *testing.T, m *messaging) *harness {
	t.Helper()
	data := dataset.Embedded()
	b := &harness{sandbox: sandbox.New(data, time.Now), flags: filepath.Join(t.TempDir(), "flags.json")}
	if m == nil {
		m = &messaging{}
	}
	components := []Component{
		{"postgres", func(context.Context) error { return nil }},
		{"redis", func(context.Context) error { return b.redisErr }},
	}
	b.requestLogPath = filepath.Join(t.TempDir(), "functions.jsonl")
	b.Handler = New(Options{
		Components: components, Sandbox: b.sandbox, Data: data, FlagsPath: b.flags, Events: m.events, Telemetry: m.telemetry, Jobs: m.jobs,
		DB: m.db, RequestLog: requestlog.Follow(b.requestLogPath, "/bff/"),
	})
	return b
}

// call requests a route and decodes the response, or returns nil for an empty body.
func (b *harness) call(t *testing.T, method, path, body string) (int, map[string]any) {
	t.Helper()
	rec := httptest.NewRecorder()
	b.ServeHTTP(rec, httptest.NewRequest(method, path, strings.NewReader(body)))
	var answer map[string]any
	if rec.Body.Len() > 0 {
		if err := json.Unmarshal(rec.Body.Bytes(), &answer); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return rec.Code, answer
}

func TestHealthz_NamesUnreachableComponent(t *testing.T) {
	t.Parallel()
	b := newHarness(t, nil)
	if code, answer := b.call(t, "GET", "/_local/healthz", ""); code != 200 || answer["status"] != "ok" {
		t.Errorf("got %d %v, want 200 ok", code, answer)
	}
	b.redisErr = errors.New("connection refused")
	code, answer := b.call(t, "GET", "/_local/healthz", "")
	if parts, _ := answer["parts"].(map[string]any); code != 503 || parts["redis"] != "connection refused" || parts["postgres"] != "ok" {
		t.Errorf("got %d %v, want 503 with the error of redis", code, answer)
	}
}

func TestUpstreams_SetAndResetBehaviour(t *testing.T) {
	t.Parallel()
	b := newHarness(t, nil)
	path := "/_local/upstreams/pricing"
	if code, answer := b.call(t, "PUT", path, `{"latencyMs":5,"errorRate":0.5}`); code != 200 || answer["behaviour"].(map[string]any)["status"] != 503.0 {
		t.Errorf("got %d %v, want 200 with the default status 503", code, answer)
	}
	b.sandbox.Upstreams["pricing"].ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/v1/pricing/quotes/preview", nil))
	code, answer := b.call(t, "GET", "/_local/upstreams", "")
	for name, want := range map[string]float64{"search": 0, "pricing": 1, "property": 0, "theme": 0} {
		if calls := answer[name].(map[string]any)["calls"]; code != 200 || calls != want {
			t.Errorf("%s: got %v calls, want %v", name, calls, want)
		}
	}
	if code, _ := b.call(t, "DELETE", path, ""); code != 204 {
		t.Errorf("reset: got %d, want 204", code)
	}
	if _, answer := b.call(t, "GET", path, ""); answer["calls"] != 0.0 || answer["behaviour"].(map[string]any)["latencyMs"] != 0.0 {
		t.Errorf("after the reset: %v", answer)
	}
	for _, name := range sandbox.UpstreamNames {
		b.sandbox.Upstreams[name].SetBehaviour(sandbox.Behaviour{LatencyMs: 5})
		b.sandbox.Upstreams[name].ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	if code, _ := b.call(t, "DELETE", "/_local/upstreams", ""); code != 204 {
		t.Errorf("reset of all: got %d, want 204", code)
	}
	for name, u := range b.sandbox.Upstreams {
		if c := u.Counters(); c.Calls != 0 || c.Behaviour != (sandbox.Behaviour{}) {
			t.Errorf("%s after the reset of all: %+v", name, c)
		}
	}
	for body, want := range map[string]struct {
		code  int
		field string
	}{
		`{"latencyMs":-1}`:                 {422, "latencyMs"},
		`{"latencyMs":1.5}`:                {422, "latencyMs"},
		`{"hang":"yes"}`:                   {422, "hang"},
		`{"latency":1}`:                    {422, "latency"},
		`[]`:                               {422, "body"},
		`null`:                             {422, "body"},
		`{"hang":null}`:                    {422, "hang"},
		`{"hang":true`:                     {400, "body"},
		``:                                 {400, "body"},
		`{"status":200}`:                   {422, "status"},
		strings.Repeat(" ", 64<<10) + `{}`: {413, ""},
		`{"errorRate":1.001}`:              {422, "errorRate"},
	} {
		code, answer := b.call(t, "PUT", path, body)
		field := ""
		if list, _ := answer["errors"].([]any); len(list) == 1 {
			field = list[0].(map[string]any)["field"].(string)
		}
		if code != want.code || field != want.field {
			t.Errorf("%s: got %d %s, want %+v", body, code, field, want)
		}
	}
}

func TestHandler_EndsBodyWithNewline(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(newHarness(t, nil))
	defer server.Close()
	for request, lines := range map[string]int{
		"GET /_local/flags": 1, "PUT /_local/flags": 1, "PUT /_local/upstreams/search": 1, "DELETE /_local/flags": 0, "DELETE /_local/nothing": 1,
	} {
		method, path, _ := strings.Cut(request, " ")
		req, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || strings.Count(string(body), "\n") != lines || lines > 0 && !strings.HasSuffix(string(body), "}\n") {
			t.Errorf("%s: %q %v", request, body, err)
		}
	}
}

func TestHandler_UnknownRouteIsProblem(t *testing.T) {
	t.Parallel()
	b := newHarness(t, nil)
	for request, want := range map[string]int{
		"GET /_local/":                   404,
		"GET /_local/nothing":            404,
		"PUT /_local/upstreams/booking":  404,
		"GET /_local/dataset/ppt_x":      404,
		"POST /_local/jobs/brew":         404,
		"PUT /_local/healthz":            405,
		"DELETE /_local/telemetry":       405,
		"GET /_local/telemetry?since=-1": 422,
		"GET /_local/telemetry?since=x":  422,
	} {
		method, path, _ := strings.Cut(request, " ")
		if code, answer := b.call(t, method, path, "{}"); code != want || answer["code"] == nil {
			t.Errorf("%s: got %d %v, want %d with a code", request, code, answer, want)
		}
	}
	rec := httptest.NewRecorder()
	b.ServeHTTP(rec, httptest.NewRequest(http.MethodPatch, "/_local/flags", nil))
	if rec.Header().Get("Allow") != "GET, PUT, DELETE" {
		t.Errorf("Allow: got %s, want GET, PUT, DELETE", rec.Header().Get("Allow"))
	}
}

func TestFlags_VisibleToReadersBeforeResponse(t *testing.T) {
	t.Parallel()
	b := newHarness(t, nil)
	reader := flags.File(b.flags) // like the reader of another process
	for _, step := range []struct {
		body string
		want func(v *flags.Values) bool
	}{
		{`{"campaignMode":true}`, func(v *flags.Values) bool { return v.CampaignMode }},
		{`{"sampling":{"search.executed":1}}`, func(v *flags.Values) bool { return v.CampaignMode && v.SamplingRate("search.executed") == 1 }},
		{`{"botMode":"off","limitsEnabled":false}`, func(v *flags.Values) bool { return v.BotMode == flags.BotOff && !v.LimitsEnabled && v.CampaignMode }},
		{`{"campaignMode":null}`, func(v *flags.Values) bool { return !v.CampaignMode && v.BotMode == flags.BotOff }},
		{`{"botMode":"enforce"}`, func(v *flags.Values) bool { return v.BotMode == flags.BotEnforce }},
		{`{"botMode":null}`, func(v *flags.Values) bool { return v.BotMode == flags.BotObserve && !v.LimitsEnabled }},
	} {
		code, answer := b.call(t, "PUT", "/_local/flags", step.body)
		if code != 200 || answer["botMode"] == nil {
			t.Errorf("%s: got %d %v, want 200 with all flags", step.body, code, answer)
		}
		if v := reader.Current(); !step.want(v) {
			t.Errorf("after %s the reader got %+v", step.body, v)
		}
	}
	code, answer := b.call(t, "PUT", "/_local/flags", `{"campaignMode":true,"botMode":"loud","limits":{"read":{"ip":0}}}`)
	if errs := answer["errors"].([]any); code != 422 || len(errs) != 2 || errs[0].(map[string]any)["field"] != "botMode" {
		t.Errorf("got %d %v, want 422 for botMode and limits", code, answer)
	}
	for body, field := range map[string]string{
		`{"campaignMode":true,"colour":"red"}`:                    "colour",
		`{"campaignMode":true,"colour":null}`:                     "colour",
		`{"campaignMode":true,"limits":{"write":{"ip":1}}}`:       "limits.write",
		`{"campaignMode":true,"limits":{"read":{"ip":"1"}}}`:      "limits.read.ip",
		`{"campaignMode":true,"sampling":{"search.executed":2}}`:  "sampling",
		`{"campaignMode":true,"sampling":{"search.executed":""}}`: "sampling.search.executed",
		`{"campaignMode":"yes"}`:                                  "campaignMode",
		`null`:                                                    "body",
	} {
		code, answer := b.call(t, "PUT", "/_local/flags", body)
		if errs, _ := answer["errors"].([]any); code != 422 || len(errs) != 1 || errs[0].(map[string]any)["field"] != field {
			t.Errorf("%s: got %d %v, want 422 for %s", body, code, answer, field)
		}
	}
	if reader.Current().CampaignMode {
		t.Error("a rejected document changed a flag")
	}
	if code, _ := b.call(t, "DELETE", "/_local/flags", ""); code != 204 {
		t.Errorf("delete: got %d, want 204", code)
	}
	if v := reader.Current(); v.BotMode != flags.BotObserve || !v.LimitsEnabled {
		t.Errorf("after the delete: %+v", v)
	}
	if _, answer := b.call(t, "GET", "/_local/flags", ""); answer["botMode"] != "observe" {
		t.Errorf("flags %v", answer)
	}
}

func TestDataset_ListsSyntheticFields(t *testing.T) {
	t.Parallel()
	b := newHarness(t, nil)
	code, answer := b.call(t, "GET", "/_local/dataset", "")
	if code != 200 || answer["source"] != "embedded" || answer["attribution"] != nil || len(answer["synthetic"].([]any)) == 0 {
		t.Errorf("got %d %v, want 200 with synthetic members", code, answer)
	}
	p := b.parts.Data.Properties[0]
	code, answer = b.call(t, "GET", "/_local/dataset/"+p.ID, "")
	if code != 200 || answer["sourceId"] != p.Row.ID || len(answer["given"].([]any)) != 0 {
		t.Errorf("got %d %v, want 200 for row %s", code, answer, p.Row.ID)
	}
}
