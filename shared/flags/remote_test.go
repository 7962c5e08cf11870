package flags

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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

// service stands in for Remote Config.
type service struct {
	*httptest.Server
	mu       sync.Mutex
	answer   func(w http.ResponseWriter, r *http.Request)
	requests []*http.Request
}

func newService(t *testing.T) (*service, *remote) {
	t.Helper()
	s := &service{}
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
func (s *service) serve(etag, body string) {
	s.respond(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		fmt.Fprint(w, body)
	})
}

func (s *service) respond(answer func(w http.ResponseWriter, r *http.Request)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func TestATemplateIsReadOnceAndThenAskedForByItsETag(t *testing.T) {
	log := logged(t)
	service, r := newService(t)
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

func TestTroubleKeepsTheLastGoodValues(t *testing.T) {
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
			log := logged(t)
			service, r := newService(t)
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

func TestAParameterThatCannotBeReadKeepsItsValueAloneAndIsToldOnce(t *testing.T) {
	log := logged(t)
	service, r := newService(t)
	s := newSource(Defaults())
	service.serve(`"one"`, template("true", `{"search.executed": 0.5}`, "observe"))
	r.refresh(t.Context(), s)

	service.serve(`"two"`, template("maybe", `{"search.executed": 0.`, "off"))
	r.refresh(t.Context(), s)
	v := s.Current()
	if !v.CampaignMode || v.Rate("search.executed") != 0.5 {
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

func TestWithoutATokenNothingIsAsked(t *testing.T) {
	log := logged(t)
	service, r := newService(t)
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

func TestAMachineWithoutCredentialsHasNoToken(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "testdata/none.json")
	if token, err := googleToken()(t.Context()); err == nil {
		t.Errorf("token %q", token)
	}
}

func TestAServiceAccountsTokenIsForRemoteConfigAloneAndKept(t *testing.T) {
	var asked atomic.Int32
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		_, claims, _ := strings.Cut(r.FormValue("assertion"), ".")
		claims, _, _ = strings.Cut(claims, ".")
		if data, err := base64.RawURLEncoding.DecodeString(claims); err != nil || !strings.Contains(string(data), `"scope":"`+scope+`"`) {
			t.Errorf("claims %s, %v", data, err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token": "granted", "token_type": "Bearer", "expires_in": 3600}`)
	}))
	defer issuer.Close()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	account, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "search@p.iam.gserviceaccount.com", "token_uri": issuer.URL,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "account.json")
	if err := os.WriteFile(file, account, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)

	token := googleToken()
	for range 3 {
		if got, err := token(t.Context()); err != nil || got != "granted" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("asked for %d tokens", asked.Load())
	}
}

func TestOpeningRemoteConfigDialsNothing(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "testdata/none.json")
	if diff := cmp.Diff(Defaults(), RemoteConfig("p").current.Load()); diff != "" {
		t.Error(diff)
	}
}

func TestASlowServiceNeverMakesAReaderWait(t *testing.T) {
	service, r := newService(t)
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

func TestReadersKickOffOneRefreshPerThirtySeconds(t *testing.T) {
	logged(t)
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		s := remoteSource(&remote{token: func(ctx context.Context) (string, error) {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > remoteLimit {
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

func TestEveryFlagHasAParameter(t *testing.T) {
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
