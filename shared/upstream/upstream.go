// Package upstream owns the calls to search-aggregation, pricing, property-service and
// theme-config: time limits, at most one retry, circuit breakers and validation of every response.
// It never caches, and never decides about the response to the guest.
//
// The rules of a call, in all methods of Search, Pricing, Property and Theme:
//
//   - A call sends at most two HTTP requests. The second follows a failed connection or transfer, a
//     502, 503 or 504, a try that ran into its time limit, or a failed ID token; for Search also
//     800 ms without a response. Any other failure is final.
//   - No connection, a 5xx, a 429 and a failed ID token give an *Error of Reason Unavailable; other
//     unexpected statuses give Reason BadResponse.
//   - Time limits include a cold connection (at most 1 s each for dial and TLS) and a cold ID token
//     (a request to the metadata server).
//   - If the deadline of ctx comes before the time limit of the service, the error is an *Error of
//     Reason Budget and wraps context.DeadlineExceeded. With less than 20 ms left no request is
//     sent. Reason Timeout means the time limit of the service.
//   - If ctx is cancelled, the error wraps context.Canceled.
//   - While the breaker is open the error is an *Error of Reason BreakerOpen at once, without a
//     request.
//   - A response over 2 MiB, a response that breaks the contract, and a panic while reading a
//     response give an *Error of Reason BadResponse.
//   - After two failed tries the error is that of the first. On any error the result is the zero
//     value.
//   - Each try runs on a goroutine of its own, holds the whole response in memory, and takes the
//     mutexes of the breaker and of the connection pool for a moment.
//
// The contracts/ folder has an OpenAPI document per service for requests and responses.
package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Config has the base URLs of the upstreams, without the paths of the contracts, such as
// "https://search-aggregation-abc-uc.a.run.app".
type Config struct {
	SearchURL   string
	PricingURL  string
	PropertyURL string
	ThemeURL    string
	Tokens      TokenSource       // nil: no Authorization header, as in local development
	Transport   http.RoundTripper // nil: NewTransport()
}

// TokenSource returns the Google ID token that authenticates this service to an upstream.
// Implementations are safe for concurrent use and respect the deadline of ctx.
type TokenSource interface {
	Token(ctx context.Context, audience string) (string, error)
}

// Upstreams has a client per service. Safe for concurrent use. Use one Upstreams per process: it
// has the connection pool, and a breaker per service. After 5 consecutive failed tries a breaker
// opens for 4 s; calls then fail at once with BreakerOpen, and after the pause a single try
// decides.
type Upstreams struct {
	Search   *Search
	Pricing  *Pricing
	Property *Property
	Theme    *Theme
}

// New returns the clients and does no I/O: the first call of each service dials. A nil
// cfg.Transport gives the clients a new connection pool. New returns nil and an error that joins
// the unusable URLs: a base URL needs http or https and a host, and has no user, query or fragment.
func New(cfg Config) (*Upstreams, error) {
	transport := cfg.Transport
	if transport == nil {
		transport = NewTransport()
	}
	var errs []error
	open := func(name, base string, p policy) *client {
		u, err := baseURL(base)
		if err != nil {
			errs = append(errs, fmt.Errorf("upstream: %s url: %w", name, err))
			return nil
		}
		return newClient(name, u, p, transport, cfg.Tokens)
	}
	u := &Upstreams{
		Search:   &Search{open("search", cfg.SearchURL, policy{timeout: 1500 * time.Millisecond, hedgeDelay: 800 * time.Millisecond})},
		Pricing:  &Pricing{open("pricing", cfg.PricingURL, policy{timeout: 800 * time.Millisecond, totalTimeout: 800 * time.Millisecond})},
		Property: &Property{open("property", cfg.PropertyURL, policy{timeout: 1000 * time.Millisecond})},
		Theme:    &Theme{open("theme", cfg.ThemeURL, policy{timeout: 600 * time.Millisecond})},
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return u, nil
}

// baseURL parses s and accepts only scheme, host and path.
func baseURL(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not an http(s) base", s)
	}
	return u, nil
}

// Caller identifies the request behind an upstream call, in headers for tracing and fair use. The
// only guest data is Bucket.
type Caller struct {
	RequestID   string // X-Request-Id
	Traceparent string // W3C trace context to propagate
	Bucket      string // X-User-Bucket: peppered hash of the session id
}

type callerKey struct{}

// WithCaller returns a context with the caller for the headers of upstream calls. Without a caller,
// or with an empty field, the header is absent; a trace of package otlp goes before
// Caller.Traceparent. A later caller replaces an earlier one. Caller is request-scoped data in a
// context value: it changes no control flow. Pure.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}
