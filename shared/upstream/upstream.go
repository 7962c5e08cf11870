// Package upstream owns the calls to the services this one composes from: search-aggregation, pricing, property and
// theme-config. It asks within a budget, believes no answer unchecked and gives up early; it never caches, and it
// never decides what a missing answer means for the guest.
//
// The contracts/ folder describes what is sent and what is expected, one OpenAPI document per service.
package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Config says where the upstreams are. Each URL is a base without a trailing path of the contract, such as
// "https://search-aggregation-abc-uc.a.run.app".
type Config struct {
	SearchURL   string
	PricingURL  string
	PropertyURL string
	ThemeURL    string
	Tokens      TokenSource       // nil: no Authorization header, as in the local system
	Transport   http.RoundTripper // nil: NewTransport()
}

// TokenSource gives the Google ID token that proves to an upstream who is calling. Safe for concurrent use.
type TokenSource interface {
	Token(ctx context.Context, audience string) (string, error)
}

// Upstreams is one client per service. Safe for concurrent use; one per process, because it holds the connection
// pool and the breakers.
type Upstreams struct {
	Search   *Search
	Pricing  *Pricing
	Property *Property
	Theme    *Theme
}

// New reads the configuration and dials nothing. All unusable URLs are named in one error.
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

// Caller is what an upstream is told about the request it works for. It holds nothing of the guest but Bucket.
type Caller struct {
	RequestID   string // X-Request-Id
	Traceparent string // W3C, the one to send on
	Bucket      string // X-User-Bucket: peppered hash of the session, opaque here
}

type callerKey struct{}

// WithCaller returns a context whose upstream calls carry the caller's headers. Without one the headers are absent.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}
