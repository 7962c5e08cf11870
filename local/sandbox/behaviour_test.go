package sandbox

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
)

func postQuery(s *Sandbox, body string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	s.Upstreams["search"].ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/api/v1/search/queries", strings.NewReader(body)))
	return rec
}

// getBrand requests a brand from theme.
func getBrand(s *Sandbox, ctx context.Context) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/theme-config/v1/tenants/"+s.data.Tenants[0].ID+"/brand-peek", nil)
	s.Upstreams["theme"].ServeHTTP(rec, r)
	return rec
}

func TestUpstream_SpreadsFailuresEvenly(t *testing.T) {
	t.Parallel()
	s := New(dataset.Embedded(), time.Now)
	theme := s.Upstreams["theme"]
	theme.SetBehaviour(Behaviour{ErrorRate: 0.25, Status: 502})
	pattern := ""
	for range 8 {
		if rec := getBrand(s, t.Context()); rec.Code == 502 {
			pattern += "x"
		} else {
			pattern += "."
		}
	}
	if pattern != "...x...x" {
		t.Errorf("failures %s", pattern)
	}
	if c := theme.Counters(); c.Calls != 8 || c.Failed != 2 || c.Routes["GET /theme-config/v1/tenants/{id}/brand-peek"] != 6 {
		t.Errorf("counters %+v", c)
	}
	theme.SetBehaviour(Behaviour{Status: 500})
	if rec := getBrand(s, t.Context()); rec.Code != 500 {
		t.Errorf("status alone means always, got %d", rec.Code)
	}
	theme.SetBehaviour(Behaviour{ErrorRate: 1})
	if rec := getBrand(s, t.Context()); rec.Code != 503 {
		t.Errorf("rate alone means 503, got %d", rec.Code)
	}
	theme.Reset()
	if rec := getBrand(s, t.Context()); rec.Code != 200 || theme.Counters().Calls != 1 {
		t.Errorf("after a reset: %d, %+v", rec.Code, theme.Counters())
	}
}

func TestUpstream_MalformedResponseIsTruncated(t *testing.T) {
	t.Parallel()
	s := New(dataset.Embedded(), time.Now)
	whole := getBrand(s, t.Context()).Body.String()
	s.Upstreams["theme"].SetBehaviour(Behaviour{Malformed: true})
	rec := getBrand(s, t.Context())
	if body := rec.Body.String(); rec.Code != 200 || body != whole[:len(whole)/2] || json.Valid([]byte(body)) {
		t.Errorf("%d %s", rec.Code, body)
	}
}

func TestUpstream_AppliesLatencyAndJitter(t *testing.T) {
	t.Parallel()
	s := New(dataset.Embedded(), time.Now)
	synctest.Test(t, func(t *testing.T) {
		s.Upstreams["theme"].SetBehaviour(Behaviour{LatencyMs: 700, JitterMs: 200})
		for range 20 {
			began := time.Now()
			getBrand(s, t.Context())
			if took := time.Since(began); took < 700*time.Millisecond || took > 5*time.Second {
				t.Errorf("took %v", took)
			}
		}
		s.Upstreams["theme"].Reset()
	})
}

func TestUpstream_HangEndsWithCallerOrBehaviour(t *testing.T) {
	t.Parallel()
	s := New(dataset.Embedded(), time.Now)
	theme := s.Upstreams["theme"]
	synctest.Test(t, func(t *testing.T) {
		theme.SetBehaviour(Behaviour{Hang: true})
		ctx, leave := context.WithCancel(t.Context())
		aborted := make(chan any)
		go func() {
			defer func() { aborted <- recover() }()
			getBrand(s, ctx)
		}()
		synctest.Wait()
		if c := theme.Counters(); c.Hung != 1 || c.InFlight != 1 {
			t.Errorf("counters %+v", c)
		}
		leave()
		if err := <-aborted; err != http.ErrAbortHandler {
			t.Errorf("the call ended with %v", err)
		}

		answered := make(chan *httptest.ResponseRecorder)
		go func() { answered <- getBrand(s, t.Context()) }()
		synctest.Wait()
		theme.SetBehaviour(Behaviour{})
		if rec := <-answered; rec.Code != http.StatusOK {
			t.Errorf("after the hang: %d", rec.Code)
		}
		if c := theme.Counters(); c.InFlight != 0 || c.Abandoned != 1 || c.Hung != 2 {
			t.Errorf("counters %+v", c)
		}
	})
}

func TestPing_IgnoresHangBehaviour(t *testing.T) {
	t.Parallel()
	s := New(dataset.Embedded(), time.Now)
	urls, stop, err := s.Serve()
	if err != nil {
		t.Fatal(err)
	}
	for name, url := range urls {
		s.Upstreams[name].SetBehaviour(Behaviour{Hang: true})
		if err := Ping(t.Context(), http.DefaultClient, url); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if calls := s.Upstreams[name].Counters().Calls; calls != 0 {
			t.Errorf("a ping counts as %d calls", calls)
		}
	}
	stop()
	if err := Ping(t.Context(), http.DefaultClient, urls["theme"]); err == nil {
		t.Error("a stopped service answers")
	}
}

func TestBehaviour_ValidateNamesField(t *testing.T) {
	t.Parallel()
	for field, b := range map[string]Behaviour{
		"latencyMs": {LatencyMs: -1}, "jitterMs": {JitterMs: maxDelayMs + 1}, "errorRate": {ErrorRate: 1.1}, "status": {Status: 200},
	} {
		if wrong := b.Validate(); len(wrong) != 1 || wrong[0].Field != field {
			t.Errorf("%+v: %+v", b, wrong)
		}
	}
	if wrong := (Behaviour{LatencyMs: 5, JitterMs: 5, ErrorRate: 1, Status: 599, Hang: true, Malformed: true}).Validate(); wrong != nil {
		t.Error(wrong)
	}
}

func TestUpstream_RejectsTenantHeader(t *testing.T) {
	t.Parallel()
	s := New(dataset.Embedded(), time.Now)
	rec := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/theme-config/v1/tenants/"+s.data.Tenants[0].ID+"/brand-peek", nil)
	r.Header.Set("X-Tenant-Id", "tnt_x")
	s.Upstreams["theme"].ServeHTTP(rec, r)
	if rec.Code != http.StatusBadRequest {
		t.Errorf("got %d", rec.Code)
	}
}
