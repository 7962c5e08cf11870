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

func post(s *Sandbox, body string) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	s.Upstreams["search"].ServeHTTP(rec, httptest.NewRequest(http.MethodPost, "/api/v1/search/queries", strings.NewReader(body)))
	return rec
}

// brandOf asks theme for a brand it has.
func brandOf(s *Sandbox, ctx context.Context) *httptest.ResponseRecorder {
	rec := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/theme-config/v1/tenants/"+s.data.Tenants[0].ID+"/brand-peek", nil)
	s.Upstreams["theme"].ServeHTTP(rec, r)
	return rec
}

func TestFailuresAreSpreadEvenly(t *testing.T) {
	s := New(dataset.Embedded(), time.Now)
	theme := s.Upstreams["theme"]
	theme.Behave(Behaviour{ErrorRate: 0.25, Status: 502})
	pattern := ""
	for range 8 {
		if rec := brandOf(s, t.Context()); rec.Code == 502 {
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
	theme.Behave(Behaviour{Status: 500})
	if rec := brandOf(s, t.Context()); rec.Code != 500 {
		t.Errorf("status alone means always, got %d", rec.Code)
	}
	theme.Behave(Behaviour{ErrorRate: 1})
	if rec := brandOf(s, t.Context()); rec.Code != 503 {
		t.Errorf("rate alone means 503, got %d", rec.Code)
	}
	theme.Reset()
	if rec := brandOf(s, t.Context()); rec.Code != 200 || theme.Counters().Calls != 1 {
		t.Errorf("after a reset: %d, %+v", rec.Code, theme.Counters())
	}
}

func TestAMalformedAnswerIsHalfAnAnswer(t *testing.T) {
	s := New(dataset.Embedded(), time.Now)
	whole := brandOf(s, t.Context()).Body.String()
	s.Upstreams["theme"].Behave(Behaviour{Malformed: true})
	rec := brandOf(s, t.Context())
	if body := rec.Body.String(); rec.Code != 200 || body != whole[:len(whole)/2] || json.Valid([]byte(body)) {
		t.Errorf("%d %s", rec.Code, body)
	}
}

func TestLatencyIsWaitedFor(t *testing.T) {
	s := New(dataset.Embedded(), time.Now)
	synctest.Test(t, func(t *testing.T) {
		s.Upstreams["theme"].Behave(Behaviour{LatencyMs: 700, JitterMs: 200})
		for range 20 {
			began := time.Now()
			brandOf(s, t.Context())
			if took := time.Since(began); took < 700*time.Millisecond || took > 5*time.Second {
				t.Errorf("took %v", took)
			}
		}
		s.Upstreams["theme"].Reset()
	})
}

func TestAHangLastsUntilTheCallerLeavesOrTheBehaviourEnds(t *testing.T) {
	s := New(dataset.Embedded(), time.Now)
	theme := s.Upstreams["theme"]
	synctest.Test(t, func(t *testing.T) {
		theme.Behave(Behaviour{Hang: true})
		ctx, leave := context.WithCancel(t.Context())
		aborted := make(chan any)
		go func() {
			defer func() { aborted <- recover() }()
			brandOf(s, ctx)
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
		go func() { answered <- brandOf(s, t.Context()) }()
		synctest.Wait()
		theme.Behave(Behaviour{})
		if rec := <-answered; rec.Code != http.StatusOK {
			t.Errorf("after the hang: %d", rec.Code)
		}
		if c := theme.Counters(); c.InFlight != 0 || c.Abandoned != 1 || c.Hung != 2 {
			t.Errorf("counters %+v", c)
		}
	})
}

func TestAServiceThatHangsOnPurposeIsNotIll(t *testing.T) {
	s := New(dataset.Embedded(), time.Now)
	urls, stop, err := s.Serve()
	if err != nil {
		t.Fatal(err)
	}
	for name, url := range urls {
		s.Upstreams[name].Behave(Behaviour{Hang: true})
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

func TestABehaviourOutOfRangeIsNamed(t *testing.T) {
	for field, b := range map[string]Behaviour{
		"latencyMs": {LatencyMs: -1}, "jitterMs": {JitterMs: maxDelayMs + 1}, "errorRate": {ErrorRate: 1.1}, "status": {Status: 200},
	} {
		if wrong := b.Check(); len(wrong) != 1 || wrong[0].Field != field {
			t.Errorf("%+v: %+v", b, wrong)
		}
	}
	if wrong := (Behaviour{LatencyMs: 5, JitterMs: 5, ErrorRate: 1, Status: 599, Hang: true, Malformed: true}).Check(); wrong != nil {
		t.Error(wrong)
	}
}

func TestNobodyIsAskedAsATenant(t *testing.T) {
	s := New(dataset.Embedded(), time.Now)
	rec := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/theme-config/v1/tenants/"+s.data.Tenants[0].ID+"/brand-peek", nil)
	r.Header.Set("X-Tenant-Id", "tnt_x")
	s.Upstreams["theme"].ServeHTTP(rec, r)
	if rec.Code != http.StatusBadRequest {
		t.Errorf("got %d", rec.Code)
	}
}
