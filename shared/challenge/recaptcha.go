package challenge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/sony/gobreaker/v2"
)

// Config says which reCAPTCHA Enterprise key pages of ours use. Project, SiteKey and Hosts are set together or not at
// all; without them there is no reCAPTCHA.
type Config struct {
	Project string   `env:"RECAPTCHA_PROJECT"`  // id of the Google Cloud project the key belongs to
	SiteKey string   `env:"RECAPTCHA_SITE_KEY"` // public: clients are told it
	Hosts   []string `env:"RECAPTCHA_HOSTS"`    // host names of pages whose tokens we take, comma separated
	URL     string   `env:"RECAPTCHA_URL" envDefault:"https://recaptchaenterprise.googleapis.com"`

	Tokens    TokenSource       // nil: of the account this process runs as
	Transport http.RoundTripper // nil: one of its own
}

// TokenSource gives the OAuth token that proves to the service who is calling. Safe for concurrent use.
type TokenSource interface {
	Token(context.Context) (string, error)
}

const (
	action           = "guest_request" // what pages name when they ask for a token: it must be in it again
	recaptchaTimeout = 400 * time.Millisecond
	minBudget        = recaptchaTimeout / 2 // a failure for lack of time says nothing of a service that had less
	failuresToOpen   = 5                    // failures in a row
	openTimeout      = 10 * time.Second
	maxClockSkew     = time.Minute // between the service's clock and ours
	maxResponse      = 1 << 20     // bytes; a real one has about 1 KB
)

// recaptcha is reCAPTCHA Enterprise by its REST API, projects.assessments.create. Only the token is sent: nothing of the
// guest that the page did not tell the service by itself.
type recaptcha struct {
	Config
	endpoint string
	client   *http.Client
	breaker  *gobreaker.CircuitBreaker[Assessment]
	now      func() time.Time
}

// Open makes the provider of a configuration and dials nothing; nil when there is none.
func Open(cfg Config, now func() time.Time) (Provider, error) {
	if cfg.Project == "" && cfg.SiteKey == "" && len(cfg.Hosts) == 0 {
		return nil, nil
	}
	if cfg.Project == "" || cfg.SiteKey == "" || len(cfg.Hosts) == 0 {
		return nil, errors.New("challenge: RECAPTCHA_PROJECT, RECAPTCHA_SITE_KEY and RECAPTCHA_HOSTS are set together or not at all")
	}
	base, err := url.Parse(cfg.URL)
	if err != nil || base.Scheme != "https" && base.Scheme != "http" || base.Host == "" || base.User != nil || base.RawQuery != "" {
		return nil, fmt.Errorf("challenge: RECAPTCHA_URL: %q is not an http(s) base", cfg.URL)
	}
	if cfg.Tokens == nil {
		cfg.Tokens = googleTokens{}
	}
	if cfg.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxIdleConnsPerHost = 8
		cfg.Transport = t
	}
	return &recaptcha{
		Config:   cfg,
		endpoint: base.JoinPath("v1", "projects", cfg.Project, "assessments").String(),
		client: &http.Client{
			Transport:     cfg.Transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // our token is for it alone
		},
		breaker: newBreaker(),
		now:     now,
	}, nil
}

func newBreaker() *gobreaker.CircuitBreaker[Assessment] {
	return gobreaker.NewCircuitBreaker[Assessment](gobreaker.Settings{
		Name: Recaptcha, MaxRequests: 1, Timeout: openTimeout,
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= failuresToOpen },
		IsExcluded:  func(err error) bool { return errors.Is(err, errShortDeadline) },
	})
}

// errShortDeadline is a failure for which the request that asked had too little time, not the service.
var errShortDeadline = errors.New("no time left to ask")

// Offer implements Provider.
func (r *recaptcha) Offer() *Offer {
	if r.breaker.State() == gobreaker.StateOpen {
		return nil
	}
	return &Offer{Kind: Recaptcha, SiteKey: r.SiteKey, Action: action}
}

// Verify implements Provider. It waits 400 ms at most, and not beyond ctx's deadline; a guest who hangs up does not stop
// it, because the service takes each token once.
func (r *recaptcha) Verify(ctx context.Context, token string) (Assessment, error) {
	limit := time.Now().Add(recaptchaTimeout)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(limit) {
		limit = deadline
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), limit)
	defer cancel()
	hasty := time.Until(limit) < minBudget
	return r.breaker.Execute(func() (Assessment, error) {
		a, err := r.createAssessment(ctx, token)
		if err != nil && hasty && ctx.Err() != nil {
			err = errShortDeadline
		}
		return a, err
	})
}

func (r *recaptcha) createAssessment(ctx context.Context, token string) (Assessment, error) {
	access, err := r.Tokens.Token(ctx)
	if err != nil {
		return Assessment{}, fmt.Errorf("get a token of our own: %w", err)
	}
	body, err := json.Marshal(map[string]map[string]string{
		"event": {"token": token, "siteKey": r.SiteKey, "expectedAction": action},
	})
	if err != nil {
		return Assessment{}, err // unreachable: a token of ASCII alone, and settings
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.endpoint, bytes.NewReader(body))
	if err != nil {
		return Assessment{}, err // unreachable: the endpoint was parsed
	}
	req.Header.Set("Authorization", "Bearer "+access)
	req.Header.Set("Content-Type", "application/json")
	res, err := r.client.Do(req)
	if err != nil {
		return Assessment{}, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxResponse))
	switch {
	case err != nil:
		return Assessment{}, err
	case res.StatusCode == http.StatusBadRequest: // what a client sent must not open the breaker
		return Assessment{Reason: "not accepted"}, nil
	case res.StatusCode != http.StatusOK:
		return Assessment{}, fmt.Errorf("status %d", res.StatusCode)
	}
	return r.checkAssessment(answer)
}

// assessmentResponse is what we read of a GoogleCloudRecaptchaenterpriseV1Assessment.
type assessmentResponse struct {
	TokenProperties *struct {
		Valid         bool      `json:"valid"`
		InvalidReason string    `json:"invalidReason"`
		CreateTime    time.Time `json:"createTime"`
		Hostname      string    `json:"hostname"`
		Action        string    `json:"action"`
	} `json:"tokenProperties"`
	RiskAnalysis struct {
		Score float64 `json:"score"` // absent when it is 0
	} `json:"riskAnalysis"`
}

// checkAssessment holds an answer against what we asked for. A valid token of another page, action or hour shows nothing.
func (r *recaptcha) checkAssessment(answer []byte) (Assessment, error) {
	var a assessmentResponse
	if err := json.Unmarshal(answer, &a); err != nil {
		return Assessment{}, fmt.Errorf("read the answer: %w", err)
	}
	p, score := a.TokenProperties, a.RiskAnalysis.Score
	if p == nil || score < 0 || score > 1 {
		return Assessment{}, errors.New("the answer has no token properties, or a score that is none")
	}
	refused := func(why string) (Assessment, error) { return Assessment{Reason: why}, nil }
	age := r.now().Sub(p.CreateTime)
	switch {
	case !p.Valid:
		return refused(reasonCode(p.InvalidReason))
	case p.Action != action:
		return refused("another action")
	case !slices.ContainsFunc(r.Hosts, func(h string) bool { return strings.EqualFold(h, p.Hostname) }):
		return refused("another host")
	case age > tokenTTL+maxClockSkew, age < -maxClockSkew:
		return refused("too old, or not yet made")
	}
	return Assessment{Valid: true, Score: score}, nil
}

// reasonCode is one of the service's constants, EXPIRED; what does not look like one stays out of the log.
func reasonCode(s string) string {
	if s == "" || len(s) > 40 || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
		return "not valid"
	}
	return s
}
