package flags

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// template returns a template of the service, with parameters inside and outside a group.
func template(campaignMode, sampling, botMode string) string {
	return fmt.Sprintf(`{
		"conditions": [{"name": "android", "expression": "device.os == 'android'"}],
		"parameters": {
			"bff.consumer.campaign_mode.v1": {"defaultValue": {"value": %q}, "conditionalValues": {"android": {"value": "false"}}, "valueType": "BOOLEAN"},
			"bff.consumer.bot_mode.v1": {"defaultValue": {"value": %q}},
			"bff.consumer.limits_enabled.v1": {"defaultValue": {"useInAppDefault": true}},
			"bff.consumer.limits.v1": {"conditionalValues": {}},
			"welcome_message": {"defaultValue": {"value": "hello"}}
		},
		"parameterGroups": {"telemetry": {"parameters": {
			"bff.consumer.sampling.v1": {"defaultValue": {"value": %q}, "valueType": "JSON"}
		}}},
		"version": {"versionNumber": "19"}
	}`, campaignMode, botMode, sampling)
}

// fakeRemoteConfig is a fake of the Remote Config service.
type fakeRemoteConfig struct {
	*httptest.Server
	mu       sync.Mutex
	handler  func(w http.ResponseWriter, r *http.Request)
	requests []*http.Request
}

func newFakeRemoteConfig(t *testing.T) (*fakeRemoteConfig, *remote) {
	t.Helper()
	s := &fakeRemoteConfig{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r)
		handler := s.handler
		s.mu.Unlock()
		handler(w, r)
	}))
	t.Cleanup(s.Close)
	return s, &remote{
		url:   s.URL + "/v1/projects/p/namespaces/firebase-server/remoteConfig",
		token: func(context.Context) (string, error) { return "secret", nil },
	}
}

// serve responds with a template and its ETag, and with 304 to a request with the ETag.
func (s *fakeRemoteConfig) serve(etag, body string) {
	s.respond(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, body)
	})
}

func (s *fakeRemoteConfig) respond(handler func(w http.ResponseWriter, r *http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler = handler
}

func TestRemote_ReadsTemplateOnceThenByETag(t *testing.T) {
	log := captureLog(t)
	service, r := newFakeRemoteConfig(t)
	s := newSource(Defaults())

	service.serve(`"one"`, template("true", `{"search.executed": 0.5}`, "observe"))
	r.refresh(t.Context(), s)
	want := Defaults()
	want.CampaignMode = true
	want.Sampling["search.executed"] = 0.5
	want.BotMode = BotObserve
	if diff := cmp.Diff(want, s.Current()); diff != "" {
		t.Error(diff)
	}

	same := s.Current()
	r.refresh(t.Context(), s)
	if s.Current() != same {
		t.Error("304 changed the values")
	}
	service.serve(`"two"`, template("false", `{}`, "enforce"))
	r.refresh(t.Context(), s)
	if diff := cmp.Diff(Defaults(), s.Current()); diff != "" {
		t.Error(diff)
	}
	service.respond(func(w http.ResponseWriter, r *http.Request) { // a proxy that ignores If-None-Match
		w.Header().Set("ETag", `"two"`)
		fmt.Fprint(w, `{}`)
	})
	same = s.Current()
	r.refresh(t.Context(), s)
	if s.Current() != same {
		t.Error("a known template was read again")
	}

	var etags []string
	for _, req := range service.requests {
		if got := req.Header.Get("Authorization"); got != "Bearer secret" {
			t.Errorf("authorization %q, want Bearer secret", got)
		}
		if got := req.URL.Path; got != "/v1/projects/p/namespaces/firebase-server/remoteConfig" {
			t.Errorf("path %s", got)
		}
		etags = append(etags, req.Header.Get("If-None-Match"))
	}
	if diff := cmp.Diff([]string{"", `"one"`, `"one"`, `"two"`}, etags); diff != "" {
		t.Error(diff)
	}
	if text := log(); text != "" {
		t.Error(text)
	}
}

func TestRemote_FailureKeepsLastGoodValues(t *testing.T) {
	for name, handler := range map[string]func(w http.ResponseWriter, r *http.Request){
		"500":       func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", 500) },
		"forbidden": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 403) },
		"not JSON":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"too large": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"a": "`+strings.Repeat("a", maxTemplate)+`"}`)
		},
		"truncated": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "{")
		},
		"disconnected": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			log := captureLog(t)
			service, r := newFakeRemoteConfig(t)
			s := newSource(Defaults())
			service.serve(`"one"`, template("true", `{}`, "off"))
			r.refresh(t.Context(), s)
			good := s.Current()

			service.respond(handler)
			r.refresh(t.Context(), s)
			if s.Current() != good {
				t.Errorf("%+v, want the last valid values", s.Current())
			}
			if log() == "" {
				t.Error("the error was not logged")
			}

			service.serve(`"two"`, template("false", `{}`, "off"))
			r.refresh(t.Context(), s)
			if s.Current().CampaignMode {
				t.Error("the next valid template was not read")
			}
		})
	}
}

func TestRemote_BadParameterKeepsValueAndLogsOnce(t *testing.T) {
	log := captureLog(t)
	service, r := newFakeRemoteConfig(t)
	s := newSource(Defaults())
	service.serve(`"one"`, template("true", `{"search.executed": 0.5}`, "observe"))
	r.refresh(t.Context(), s)

	service.serve(`"two"`, template("maybe", `{"search.executed": 0.`, "off"))
	r.refresh(t.Context(), s)
	v := s.Current()
	if !v.CampaignMode || v.SamplingRate("search.executed") != 0.5 {
		t.Errorf("%+v, want the last valid campaign mode and sampling rate", v)
	}
	if v.BotMode != BotOff {
		t.Errorf("bot mode %s, want the new value off", v.BotMode)
	}
	if text := log(); !strings.Contains(text, "campaignMode") || !strings.Contains(text, "sampling") {
		t.Errorf("log %q, want the names of both fields", text)
	}
	r.refresh(t.Context(), s)
	if text := log(); text != "" {
		t.Errorf("logged again: %q", text)
	}
}

func TestRemote_WithoutTokenSendsNothing(t *testing.T) {
	log := captureLog(t)
	service, r := newFakeRemoteConfig(t)
	r.token = func(context.Context) (string, error) { return "", errors.New("no credentials") }
	s := newSource(Defaults())
	r.refresh(t.Context(), s)
	if len(service.requests) > 0 || !strings.Contains(log(), "no credentials") {
		t.Errorf("%d requests, want 0 and a log", len(service.requests))
	}
	r.url, r.token = ":", func(context.Context) (string, error) { return "secret", nil }
	r.refresh(t.Context(), s)
	if log() == "" {
		t.Error("an invalid URL was not logged")
	}
}

func TestRemoteConfig_SendsScopedToken(t *testing.T) {
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if scope := r.FormValue("scopes"); scope != "https://www.googleapis.com/auth/firebase.remoteconfig" {
			t.Errorf("scope %q, want the scope of Remote Config", scope)
		}
		fmt.Fprint(w, `{"access_token": "granted", "token_type": "Bearer", "expires_in": 3600}`)
	}))
	defer metadata.Close()
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(metadata.URL, "http://"))
	if token, err := newRemote("p").token(t.Context()); token != "granted" || err != nil {
		t.Errorf("token %q, error %v; want granted", token, err)
	}
}

func TestRemoteConfig_OpeningDialsNothing(t *testing.T) {
	t.Setenv("GCE_METADATA_HOST", "127.0.0.1:1")
	if diff := cmp.Diff(Defaults(), RemoteConfig("p").current.Load()); diff != "" {
		t.Error(diff)
	}
}

func TestRemote_SlowServiceNeverBlocksReader(t *testing.T) {
	service, r := newFakeRemoteConfig(t)
	arrived, release := make(chan struct{}), make(chan struct{})
	service.respond(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
		fmt.Fprint(w, template("true", `{}`, "off"))
	})
	s := remoteSource(r)
	s.Current()
	<-arrived
	for range 1_000 { // while the service does not respond
		if s.Current().CampaignMode {
			t.Fatalf("%+v, want the defaults", s.Current())
		}
	}
	second := newSource(Defaults())
	r.refresh(t.Context(), second) // returns at once, because the first refresh is running
	close(release)
	r.mu.Lock() // waits for the end of the refresh
	defer r.mu.Unlock()
	if !s.current.Load().CampaignMode {
		t.Error("the response was lost")
	}
	if len(service.requests) != 1 {
		t.Errorf("%d requests, want 1", len(service.requests))
	}
}

func TestRemote_OneRefreshPerThirtySeconds(t *testing.T) {
	captureLog(t)
	synctest.Test(t, func(t *testing.T) {
		var refreshes atomic.Int32
		s := remoteSource(&remote{token: func(ctx context.Context) (string, error) {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > remoteTimeout {
				t.Error("a refresh has no deadline within remoteTimeout")
			}
			refreshes.Add(1)
			return "", errors.New("no credentials")
		}})
		if refreshes.Load() != 0 {
			t.Error("refreshed before the first read")
		}
		for range 3 * 60 { // three minutes of one request a second
			s.Current()
			<-time.After(time.Second)
		}
		if n := refreshes.Load(); n != 6 {
			t.Errorf("%d refreshes in three minutes, want 6", n)
		}
		<-time.After(time.Hour)
		if n := refreshes.Load(); n != 6 {
			t.Errorf("%d refreshes after an hour without a read, want 6", n)
		}
	})
}

func TestRemote_EveryFlagHasParameter(t *testing.T) {
	t.Parallel()
	fields := slices.Sorted(maps.Values(parameters))
	v := reflect.TypeFor[Values]()
	for i := range v.NumField() {
		if name := v.Field(i).Tag.Get("json"); !slices.Contains(fields, name) {
			t.Errorf("field %s has no parameter", name)
		}
	}
	if len(fields) != v.NumField() {
		t.Errorf("fields %q of parameters, want %d", fields, v.NumField())
	}
}
