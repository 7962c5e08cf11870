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

// Config is the reCAPTCHA Enterprise key of the web pages. Project, SiteKey and Hosts are set
// together or not at all; without them reCAPTCHA is off.
type Config struct {
	Project string `env:"RECAPTCHA_PROJECT"`  // id of the Google Cloud project of the key
	SiteKey string `env:"RECAPTCHA_SITE_KEY"` // public: clients receive it
	// host names of the pages whose tokens are accepted, comma separated
	Hosts []string `env:"RECAPTCHA_HOSTS"`
	URL   string   `env:"RECAPTCHA_URL" envDefault:"https://recaptchaenterprise.googleapis.com"`

	Tokens    TokenSource       // nil: tokens of the account of this process
	Transport http.RoundTripper // nil: a separate transport with the settings of http.DefaultTransport
}

// TokenSource returns OAuth access tokens for calls of the service. An implementation must be safe
// for concurrent use.
type TokenSource interface {
	Token(context.Context) (string, error)
}

const (
	action           = "guest_request" // action name that pages request a token for; every token must have it
	recaptchaTimeout = 400 * time.Millisecond
	// a timeout within less time does not count as a failure of the service
	minBudget      = recaptchaTimeout / 2
	failuresToOpen = 5                // consecutive failures that open the circuit breaker
	openTimeout    = 10 * time.Second // then one call is tried
	maxClockSkew   = time.Minute      // between the clocks of the service and of this instance
	maxResponse    = 1 << 20          // bytes; a real response has about 1 KB
)

// recaptcha calls the REST API of reCAPTCHA Enterprise, projects.assessments.create. A request
// contains the token and no other data about the guest. It is safe for concurrent use.
type recaptcha struct {
	Config
	endpoint string
	client   *http.Client
	breaker  *gobreaker.CircuitBreaker[Assessment]
	now      func() time.Time
}

// Open returns the provider of a configuration, or (nil, nil) if Project, SiteKey and Hosts are all
// empty: reCAPTCHA is off. It dials nothing and gets no token. It returns an error if Project,
// SiteKey and Hosts are set in part or URL is not an http(s) base URL; a wrong but well-formed
// value fails only the calls. The provider is safe for concurrent use; now must not be nil.
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
			Transport: cfg.Transport,
			// a redirect must not receive the access token
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		breaker: newBreaker(),
		now:     now,
	}, nil
}

// newBreaker returns a circuit breaker that opens for 10 s after 5 consecutive failures.
func newBreaker() *gobreaker.CircuitBreaker[Assessment] {
	return gobreaker.NewCircuitBreaker[Assessment](gobreaker.Settings{
		Name: Recaptcha, MaxRequests: 1, Timeout: openTimeout,
		ReadyToTrip: func(n gobreaker.Counts) bool { return n.ConsecutiveFailures >= failuresToOpen },
		IsExcluded:  func(err error) bool { return errors.Is(err, errShortDeadline) },
	})
}

// errShortDeadline is a timeout of a call that had less than minBudget left.
var errShortDeadline = errors.New("not enough time left")

// Offer implements Provider. It returns nil while the circuit breaker is open. It does no I/O,
// takes the mutex of the breaker for a moment and never fails.
func (r *recaptcha) Offer() *Offer {
	if r.breaker.State() == gobreaker.StateOpen {
		return nil
	}
	return &Offer{Kind: Recaptcha, SiteKey: r.SiteKey, Action: action}
}

// Verify implements Provider with one HTTP request, after one for an access token if none is
// cached. Verify takes at most 400 ms and respects the deadline of ctx, but not the cancellation of
// ctx, because the service accepts each token only once. Verify never repeats a request.
//
// Errors: no access token, a failed or late request, a status other than 200 and 400, or an
// unreadable response; five in a row open the circuit breaker for 10 s. A call with less than 200
// ms that runs out of time returns errShortDeadline and does not count. While the breaker is open,
// Verify fails at once with gobreaker.ErrOpenState; after the pause one call is tried, others fail
// with gobreaker.ErrTooManyRequests. Status 400 and a rejected token are an Assessment that is not
// Valid, with a Reason, and no error.
func (r *recaptcha) Verify(ctx context.Context, token string) (Assessment, error) {
	limit := time.Now().Add(recaptchaTimeout)
	if deadline, ok := ctx.Deadline(); ok && deadline.Before(limit) {
		limit = deadline
	}
	ctx, cancel := context.WithDeadline(context.WithoutCancel(ctx), limit)
	defer cancel()
	short := time.Until(limit) < minBudget
	return r.breaker.Execute(func() (Assessment, error) {
		a, err := r.createAssessment(ctx, token)
		if err != nil && short && ctx.Err() != nil {
			err = errShortDeadline
		}
		return a, err
	})
}

// createAssessment calls the service once.
func (r *recaptcha) createAssessment(ctx context.Context, token string) (Assessment, error) {
	access, err := r.Tokens.Token(ctx)
	if err != nil {
		return Assessment{}, fmt.Errorf("get an access token: %w", err)
	}
	body, err := json.Marshal(map[string]map[string]string{
		"event": {"token": token, "siteKey": r.SiteKey, "expectedAction": action},
	})
	if err != nil {
		return Assessment{}, err // unreachable: plausible accepts ASCII tokens only
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
	response, err := io.ReadAll(io.LimitReader(res.Body, maxResponse))
	switch {
	case err != nil:
		return Assessment{}, err
	case res.StatusCode == http.StatusBadRequest: // a client's token must not open the circuit breaker
		return Assessment{Reason: "not accepted"}, nil
	case res.StatusCode != http.StatusOK:
		return Assessment{}, fmt.Errorf("status %d", res.StatusCode)
	}
	return r.checkAssessment(response)
}

// assessmentResponse is the part of GoogleCloudRecaptchaenterpriseV1Assessment that this package
// reads.
type assessmentResponse struct {
	TokenProperties *struct {
		Valid         bool      `json:"valid"`
		InvalidReason string    `json:"invalidReason"`
		CreateTime    time.Time `json:"createTime"`
		Hostname      string    `json:"hostname"`
		Action        string    `json:"action"`
	} `json:"tokenProperties"`
	RiskAnalysis struct {
		Score float64 `json:"score"` // absent if 0
	} `json:"riskAnalysis"`
}

// checkAssessment reads a response. A valid token is rejected if it belongs to another action or
// host, or if its age is above tokenTTL plus maxClockSkew or below minus maxClockSkew.
func (r *recaptcha) checkAssessment(response []byte) (Assessment, error) {
	var a assessmentResponse
	if err := json.Unmarshal(response, &a); err != nil {
		return Assessment{}, fmt.Errorf("read the response: %w", err)
	}
	p, score := a.TokenProperties, a.RiskAnalysis.Score
	if p == nil || score < 0 || score > 1 {
		return Assessment{}, errors.New("the response has no token properties or a score outside 0 … 1")
	}
	reject := func(reason string) (Assessment, error) { return Assessment{Reason: reason}, nil }
	age := r.now().Sub(p.CreateTime)
	switch {
	case !p.Valid:
		return reject(reasonCode(p.InvalidReason))
	case p.Action != action:
		return reject("another action")
	case !slices.ContainsFunc(r.Hosts, func(h string) bool { return strings.EqualFold(h, p.Hostname) }):
		return reject("another host")
	case age > tokenTTL+maxClockSkew, age < -maxClockSkew:
		return reject("created too long ago or in the future")
	}
	return Assessment{Valid: true, Score: score}, nil
}

// reasonCode returns a reason that has the form of a constant of the service, such as EXPIRED. Any
// other text becomes "not valid", so that no free text gets into the log.
func reasonCode(s string) string {
	if s == "" || len(s) > 40 || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") != "" {
		return "not valid"
	}
	return s
}
