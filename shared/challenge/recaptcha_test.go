package challenge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	api "google.golang.org/api/recaptchaenterprise/v1"
)

const (
	site  = "6LcTestSiteKey"
	token = "03AFcWeA-a_token_of_the_form_they_have_0123456789"
)

// fakeRecaptcha is a fake of the service. It reads and writes the types of Google's client library.
type fakeRecaptcha struct {
	requests atomic.Int32
	answer   func(*api.GoogleCloudRecaptchaenterpriseV1Event) (int, *api.GoogleCloudRecaptchaenterpriseV1Assessment)
}

// RoundTrip answers without a network, so that tests can run in synctest.
func (g *fakeRecaptcha) RoundTrip(r *http.Request) (*http.Response, error) {
	g.requests.Add(1)
	w := httptest.NewRecorder()
	if r.Method != http.MethodPost || r.URL.String() != "https://recaptcha.test/v1/projects/melmastoon-prod/assessments" {
		http.Error(w, "no such method", http.StatusNotFound)
		return w.Result(), nil
	}
	if r.Header.Get("Authorization") != "Bearer ours" || r.Header.Get("Content-Type") != "application/json" {
		http.Error(w, "invalid header", http.StatusUnauthorized)
		return w.Result(), nil
	}
	var request api.GoogleCloudRecaptchaenterpriseV1Assessment
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&request); err != nil {
		return nil, err
	}
	status, answer := g.answer(request.Event)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		return nil, err
	}
	return w.Result(), nil
}

// validAssessment returns the response to a valid token.
func validAssessment(e *api.GoogleCloudRecaptchaenterpriseV1Event, score float64, now time.Time) *api.GoogleCloudRecaptchaenterpriseV1Assessment {
	return &api.GoogleCloudRecaptchaenterpriseV1Assessment{
		Name:  "projects/1/assessments/2",
		Event: e,
		RiskAnalysis: &api.GoogleCloudRecaptchaenterpriseV1RiskAnalysis{
			Score: score, Reasons: []string{"LOW_CONFIDENCE_SCORE"},
		},
		TokenProperties: &api.GoogleCloudRecaptchaenterpriseV1TokenProperties{
			Valid: true, Action: e.ExpectedAction, Hostname: "www.melmastoon.ghasi.io", CreateTime: now.Add(-20 * time.Second).Format(time.RFC3339Nano),
		},
	}
}

type fakeTokens struct{ err error }

func (o fakeTokens) Token(context.Context) (string, error) { return "ours", o.err }

func config(g http.RoundTripper) Config {
	return Config{
		Project: "melmastoon-prod", SiteKey: site, Hosts: []string{"melmastoon.ghasi.io", "WWW.melmastoon.ghasi.io"},
		URL: "https://recaptcha.test", Tokens: fakeTokens{}, Transport: g,
	}
}

func openProvider(t *testing.T, cfg Config) Provider {
	t.Helper()
	p, err := Open(cfg, at(noon))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestRecaptcha_RequestMatchesAPI(t *testing.T) {
	t.Parallel()
	g := &fakeRecaptcha{answer: func(e *api.GoogleCloudRecaptchaenterpriseV1Event) (int, *api.GoogleCloudRecaptchaenterpriseV1Assessment) {
		if e.Token != token || e.SiteKey != site || e.ExpectedAction != "guest_request" {
			t.Errorf("event %+v, want the token, the site key and the action", e)
		}
		if e.UserAgent != "" || e.UserIpAddress != "" || e.RequestedUri != "" || len(e.Headers) > 0 {
			t.Errorf("event %+v contains data about the guest", e)
		}
		return 200, validAssessment(e, 0.7, noon)
	}}
	p := openProvider(t, config(g))
	if a, err := p.Verify(t.Context(), token); err != nil || a != (Assessment{Valid: true, Score: 0.7}) {
		t.Errorf("%+v, error %v; want valid with the score 0.7", a, err)
	}
	if o := p.Offer(); o == nil || *o != (Offer{Kind: "recaptcha", SiteKey: site, Action: "guest_request"}) {
		t.Errorf("offer %+v", o)
	}
}

func TestRecaptcha_InterpretsAssessment(t *testing.T) {
	t.Parallel()
	type properties = api.GoogleCloudRecaptchaenterpriseV1TokenProperties
	score := func(v float64) func(*api.GoogleCloudRecaptchaenterpriseV1Assessment) {
		return func(a *api.GoogleCloudRecaptchaenterpriseV1Assessment) { a.RiskAnalysis.Score = v }
	}
	with := func(change func(*properties)) func(*api.GoogleCloudRecaptchaenterpriseV1Assessment) {
		return func(a *api.GoogleCloudRecaptchaenterpriseV1Assessment) { change(a.TokenProperties) }
	}
	for name, c := range map[string]struct {
		status int
		change func(*api.GoogleCloudRecaptchaenterpriseV1Assessment)
		want   Assessment
		fails  string
	}{
		"human":            {200, score(1), Assessment{Valid: true, Score: 1}, ""},
		"robot":            {200, score(0), Assessment{Valid: true}, ""},
		"no score":         {200, func(a *api.GoogleCloudRecaptchaenterpriseV1Assessment) { a.RiskAnalysis = nil }, Assessment{Valid: true}, ""},
		"expired":          {200, with(func(p *properties) { p.Valid, p.InvalidReason = false, "EXPIRED" }), Assessment{Reason: "EXPIRED"}, ""},
		"used before":      {200, with(func(p *properties) { p.Valid, p.InvalidReason = false, "DUPE" }), Assessment{Reason: "DUPE"}, ""},
		"no reason":        {200, with(func(p *properties) { p.Valid = false }), Assessment{Reason: "not valid"}, ""},
		"odd reason":       {200, with(func(p *properties) { p.Valid, p.InvalidReason = false, "203.0.113.9 sent it" }), Assessment{Reason: "not valid"}, ""},
		"other action":     {200, with(func(p *properties) { p.Action = "login" }), Assessment{Reason: "another action"}, ""},
		"no action":        {200, with(func(p *properties) { p.Action = "" }), Assessment{Reason: "another action"}, ""},
		"other page":       {200, with(func(p *properties) { p.Hostname = "melmastoon.ghasi.io.example" }), Assessment{Reason: "another host"}, ""},
		"no page":          {200, with(func(p *properties) { p.Hostname = "" }), Assessment{Reason: "another host"}, ""},
		"host in capitals": {200, with(func(p *properties) { p.Hostname = "WWW.MELMASTOON.GHASI.IO" }), Assessment{Valid: true, Score: 0.7}, ""},
		"old":              {200, with(func(p *properties) { p.CreateTime = noon.Add(-4 * time.Minute).Format(time.RFC3339) }), Assessment{Reason: "created too long ago or in the future"}, ""},
		"in the future":    {200, with(func(p *properties) { p.CreateTime = noon.Add(24 * time.Hour).Format(time.RFC3339) }), Assessment{Reason: "created too long ago or in the future"}, ""},
		"without a time":   {200, with(func(p *properties) { p.CreateTime = "" }), Assessment{Reason: "created too long ago or in the future"}, ""},
		"invalid time":     {200, with(func(p *properties) { p.CreateTime = "noon" }), Assessment{}, "read the response"},
		"no properties":    {200, func(a *api.GoogleCloudRecaptchaenterpriseV1Assessment) { a.TokenProperties = nil }, Assessment{}, "no token properties"},
		"score of five":    {200, score(5), Assessment{}, "a score outside 0 … 1"},
		"bad request":      {400, score(1), Assessment{Reason: "not accepted"}, ""},
		"no permission":    {403, score(1), Assessment{}, "status 403"},
		"quota":            {429, score(1), Assessment{}, "status 429"},
		"broken":           {500, score(1), Assessment{}, "status 500"},
		"elsewhere":        {302, score(1), Assessment{}, "status 302"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &fakeRecaptcha{answer: func(e *api.GoogleCloudRecaptchaenterpriseV1Event) (int, *api.GoogleCloudRecaptchaenterpriseV1Assessment) {
				a := validAssessment(e, 0.7, noon)
				c.change(a)
				return c.status, a
			}}
			a, err := openProvider(t, config(g)).Verify(t.Context(), token)
			if a != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("%+v, error %v; want %+v, error %q", a, err, c.want, c.fails)
			}
			if err != nil && strings.Contains(err.Error(), token) {
				t.Errorf("the error contains the token: %v", err)
			}
		})
	}
}

func TestRecaptcha_SilentServiceTimesOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silent := roundTripFunc(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		p := openProvider(t, config(silent))
		began := time.Now()
		if _, err := p.Verify(t.Context(), token); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want DeadlineExceeded", err)
		}
		if took := time.Since(began); took != recaptchaTimeout {
			t.Errorf("after %v, want %v", took, recaptchaTimeout)
		}
		for range failuresToOpen - 1 {
			if p.Offer() == nil {
				t.Fatal("no offer while the circuit breaker is closed")
			}
			p.Verify(t.Context(), token)
		}
		began = time.Now()
		if _, err := p.Verify(t.Context(), token); err == nil || time.Since(began) != 0 {
			t.Errorf("error %v after %v, want an error at once", err, time.Since(began))
		}
		if p.Offer() != nil {
			t.Error("an offer while the circuit breaker is open")
		}
		<-time.After(openTimeout + time.Millisecond)
		if p.Offer() == nil {
			t.Error("no offer after openTimeout")
		}
	})
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRecaptcha_ClientErrorsDoNotOpenBreaker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &fakeRecaptcha{answer: func(e *api.GoogleCloudRecaptchaenterpriseV1Event) (int, *api.GoogleCloudRecaptchaenterpriseV1Assessment) {
			if e.Token == token+"bad" {
				return 400, nil
			}
			time.Sleep(recaptchaTimeout / 4) // by the clock of synctest
			return 200, validAssessment(e, 0.9, noon)
		}}
		p := openProvider(t, config(g))
		for range 2 * failuresToOpen {
			p.Verify(t.Context(), token+"bad")
			short, cancel := context.WithTimeout(t.Context(), recaptchaTimeout/5)
			if _, err := p.Verify(short, token); !errors.Is(err, errShortDeadline) {
				t.Fatalf("with little time left: error %v, want errShortDeadline", err)
			}
			cancel()
		}
		disconnected, cancel := context.WithCancel(t.Context())
		cancel()
		if a, err := p.Verify(disconnected, token); err != nil || !a.Valid {
			t.Errorf("after the client disconnected: %+v, error %v; want valid", a, err)
		}
	})
}

func TestRecaptcha_WithoutAccessTokenSendsNothing(t *testing.T) {
	t.Parallel()
	g := &fakeRecaptcha{}
	cfg := config(g)
	cfg.Tokens = fakeTokens{errors.New("no credentials")}
	if _, err := openProvider(t, cfg).Verify(t.Context(), token); err == nil || !strings.Contains(err.Error(), "no credentials") || g.requests.Load() != 0 {
		t.Errorf("error %v, %d requests; want no credentials and 0", err, g.requests.Load())
	}
}

func TestOpen_RequiresAllSettingsOrNone(t *testing.T) {
	t.Parallel()
	if p, err := Open(Config{URL: "https://recaptchaenterprise.googleapis.com"}, time.Now); p != nil || err != nil {
		t.Errorf("without settings: %v, error %v; want nil", p, err)
	}
	for name, change := range map[string]func(*Config){
		"RECAPTCHA_PROJECT":  func(c *Config) { c.Project = "" },
		"RECAPTCHA_SITE_KEY": func(c *Config) { c.SiteKey = "" },
		"RECAPTCHA_HOSTS":    func(c *Config) { c.Hosts = nil },
		"RECAPTCHA_URL":      func(c *Config) { c.URL = "recaptcha" },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(nil)
			change(&cfg)
			if p, err := Open(cfg, time.Now); p != nil || err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%v, error %v; want an error that names %s", p, err, name)
			}
		})
	}
}

// countingProvider is a Provider with a fixed answer that counts its calls.
type countingProvider struct {
	calls atomic.Int32
	hold  chan struct{} // if not nil, calls wait until the channel is closed
	fails atomic.Bool
	score float64
}

func (p *countingProvider) Verify(context.Context, string) (Assessment, error) {
	p.calls.Add(1)
	if p.hold != nil {
		<-p.hold
	}
	if p.fails.Load() {
		return Assessment{}, fmt.Errorf("status 503")
	}
	return Assessment{Valid: true, Score: p.score}, nil
}

func (p *countingProvider) Offer() *Offer {
	return &Offer{Kind: Recaptcha, SiteKey: site, Action: action}
}

func TestOnceVerifier_VerifiesEachTokenOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &countingProvider{hold: make(chan struct{}), score: 0.8}
		o := newOnceVerifier(p, time.Now)
		answers := make(chan Assessment, 50)
		for range cap(answers) {
			go func() {
				a, _ := o.verify(t.Context(), token, guest)
				answers <- a
			}()
		}
		synctest.Wait()
		close(p.hold)
		for range cap(answers) {
			if a := <-answers; !a.Valid || a.Score != 0.8 {
				t.Errorf("%+v, want valid with the score 0.8", a)
			}
		}
		if n := p.calls.Load(); n != 1 {
			t.Errorf("%d calls of the provider, want 1", n)
		}
		if a, _ := o.verify(t.Context(), token, Client{Fingerprint: "another", Address: guest.Address}); a.Valid {
			t.Error("another client's token is valid")
		}
		<-time.After(tokenTTL + time.Millisecond)
		if a, _ := o.verify(t.Context(), token, guest); a.Valid || p.calls.Load() != 1 {
			t.Errorf("after tokenTTL: %+v with %d calls, want invalid with 1", a, p.calls.Load())
		}
	})
}

func TestOnceVerifier_FailedTokenMayBeRetried(t *testing.T) {
	t.Parallel()
	p := &countingProvider{score: 0.8}
	p.fails.Store(true)
	o := newOnceVerifier(p, time.Now)
	if _, err := o.verify(t.Context(), token, guest); err == nil {
		t.Fatal("no error while the provider fails")
	}
	p.fails.Store(false)
	if a, err := o.verify(t.Context(), token, guest); err != nil || !a.Valid {
		t.Errorf("second call: %+v, error %v; want valid", a, err)
	}
}

func TestOnceVerifier_RejectsImplausibleTokens(t *testing.T) {
	t.Parallel()
	p := &countingProvider{score: 0.8}
	o := newOnceVerifier(p, time.Now)
	for _, junk := range []string{"", "short", strings.Repeat("x", maxToken+1), token + " ", token + "é", token + "\n"} {
		t.Run(fmt.Sprintf("%.20q", junk), func(t *testing.T) {
			if a, err := o.verify(t.Context(), junk, guest); err != nil || a.Valid {
				t.Errorf("%+v, error %v; want invalid", a, err)
			}
		})
	}
	if p.calls.Load() != 0 {
		t.Errorf("%d calls of the provider, want 0", p.calls.Load())
	}
}
