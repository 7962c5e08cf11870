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

// template is what the service answers, with our parameters in and outside a group.
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

// fakeRemoteConfig stands in for Remote Config.
type fakeRemoteConfig struct {
	*httptest.Server
	mu       sync.Mutex
	answer   func(w http.ResponseWriter, r *http.Request)
	requests []*http.Request
}

func newFakeRemoteConfig(t *testing.T) (*fakeRemoteConfig, *remote) {
	t.Helper()
	s := &fakeRemoteConfig{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests = append(s.requests, r)
		answer := s.answer
		s.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s, &remote{
		url:   s.URL + "/v1/projects/p/namespaces/firebase-server/remoteConfig",
		token: func(context.Context) (string, error) { return "secret", nil },
	}
}

// serve answers a template under an ETag, and 304 to who has it.
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

func (s *fakeRemoteConfig) respond(answer func(w http.ResponseWriter, r *http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
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
		t.Error("the template we have was read again")
	}

	var asked []string
	for _, req := range service.requests {
		if got := req.Header.Get("Authorization"); got != "Bearer secret" {
			t.Errorf("authorised by %q", got)
		}
		if got := req.URL.Path; got != "/v1/projects/p/namespaces/firebase-server/remoteConfig" {
			t.Errorf("asked %s", got)
		}
		asked = append(asked, req.Header.Get("If-None-Match"))
	}
	if diff := cmp.Diff([]string{"", `"one"`, `"one"`, `"two"`}, asked); diff != "" {
		t.Error(diff)
	}
	if text := log(); text != "" {
		t.Error(text)
	}
}

func TestRemote_FailureKeepsLastGoodValues(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, r *http.Request){
		"500":       func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", 500) },
		"forbidden": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 403) },
		"not JSON":  func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") },
		"too long": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"a": "`+strings.Repeat("a", maxTemplate)+`"}`)
		},
		"cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "{")
		},
		"hung up": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			log := captureLog(t)
			service, r := newFakeRemoteConfig(t)
			s := newSource(Defaults())
			service.serve(`"one"`, template("true", `{}`, "off"))
			r.refresh(t.Context(), s)
			good := s.Current()

			service.respond(answer)
			r.refresh(t.Context(), s)
			if s.Current() != good {
				t.Errorf("%+v", s.Current())
			}
			if log() == "" {
				t.Error("nobody was told")
			}

			service.serve(`"two"`, template("false", `{}`, "off"))
			r.refresh(t.Context(), s)
			if s.Current().CampaignMode {
				t.Error("did not recover")
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
		t.Errorf("the last good value is lost: %+v", v)
	}
	if v.BotMode != BotOff {
		t.Error("the good parameter beside it was not taken")
	}
	if text := log(); !strings.Contains(text, "campaignMode") || !strings.Contains(text, "sampling") {
		t.Errorf("told %q", text)
	}
	r.refresh(t.Context(), s)
	if text := log(); text != "" {
		t.Errorf("told again: %q", text)
	}
}

func TestRemote_WithoutTokenSendsNothing(t *testing.T) {
	log := captureLog(t)
	service, r := newFakeRemoteConfig(t)
	r.token = func(context.Context) (string, error) { return "", errors.New("no credentials") }
	s := newSource(Defaults())
	r.refresh(t.Context(), s)
	if len(service.requests) > 0 || !strings.Contains(log(), "no credentials") {
		t.Errorf("%d requests", len(service.requests))
	}
	r.url, r.token = ":", func(context.Context) (string, error) { return "secret", nil }
	r.refresh(t.Context(), s)
	if log() == "" {
		t.Error("an address that is none is no trouble")
	}
}

func TestRemoteConfig_SendsScopedToken(t *testing.T) {
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if scope := r.FormValue("scopes"); scope != "https://www.googleapis.com/auth/firebase.remoteconfig" {
			t.Errorf("scope %q", scope)
		}
		fmt.Fprint(w, `{"access_token": "granted", "token_type": "Bearer", "expires_in": 3600}`)
	}))
	defer metadata.Close()
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(metadata.URL, "http://"))
	if token, err := newRemote("p").token(t.Context()); token != "granted" || err != nil {
		t.Errorf("%q, %v", token, err)
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
	for range 1_000 { // with the service hung all the while
		if s.Current().CampaignMode {
			t.Fatal("not the defaults")
		}
	}
	second := newSource(Defaults())
	r.refresh(t.Context(), second) // while the first is on its way: not a second one
	close(release)
	r.mu.Lock() // the refresh under way is over
	defer r.mu.Unlock()
	if !s.current.Load().CampaignMode {
		t.Error("the answer was lost")
	}
	if len(service.requests) != 1 {
		t.Errorf("%d requests", len(service.requests))
	}
}

func TestRemote_OneRefreshPerThirtySeconds(t *testing.T) {
	captureLog(t)
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		s := remoteSource(&remote{token: func(ctx context.Context) (string, error) {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > remoteTimeout {
				t.Error("a refresh may take for ever")
			}
			asked.Add(1)
			return "", errors.New("no credentials")
		}})
		if asked.Load() != 0 {
			t.Error("opened before anybody asked")
		}
		for range 3 * 60 { // three minutes of one request a second
			s.Current()
			<-time.After(time.Second)
		}
		if n := asked.Load(); n != 6 {
			t.Errorf("asked %d times in three minutes", n)
		}
		<-time.After(time.Hour)
		if n := asked.Load(); n != 6 {
			t.Error("asked without a reader")
		}
	})
}

func TestRemote_EveryFlagHasParameter(t *testing.T) {
	fields := slices.Sorted(maps.Values(parameters))
	v := reflect.TypeFor[Values]()
	for i := range v.NumField() {
		if name := v.Field(i).Tag.Get("json"); !slices.Contains(fields, name) {
			t.Errorf("%s cannot be set", name)
		}
	}
	if len(fields) != v.NumField() {
		t.Errorf("parameters of no flag: %v", fields)
	}
}
