// Package detail owns two public routes about a hotel: the page and the availability calendar. Both
// answers are shared: answers depend on URL, language and currency, never on the guest, and may be
// stored at the edge. The package writes no table, except verdicts of the bot detector.
//
// Admission to both routes is a Redis round trip of at most 100 ms; a malformed request (422) costs
// no round trip. Admission can add 300 ms of Redis or Postgres for the suspended tenants. A client
// over a limit (429) costs another 100 ms of Redis; a client with the score of a bot up to 400 ms
// of reCAPTCHA and 300 ms of Postgres, and 500 ms of Redis if Postgres fails. Without Redis each
// instance enforces the limits by itself. An error other than a named problem is 500.
package detail

import (
	"context"
	"errors"
	"fmt"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // required by the platform build
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
	"github.com/caarlos0/env/v11"

	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
)

func init() {
	functions.HTTP("Detail", web.Register("Detail", "GET "+web.BasePath+"/hotels/{propertyId}", openDetail))
	functions.HTTP("Availability", web.Register("Availability", "GET "+web.BasePath+"/hotels/{propertyId}/availability", openAvailability))
}

// environment holds the settings of this function besides wiring.Environment.
type environment struct {
	Link handoff.Link `env:"HANDOFF_LINK"` // booking URL with {tenantSlug}; default: handoff.DefaultLink
}

// openDetail builds Detail from the environment. Reports all missing or malformed settings at once.
func openDetail(ctx context.Context, warmUp *lifecycle.WarmUp) (web.Handler, error) {
	e, err := env.ParseAs[environment]()
	if err != nil {
		err = fmt.Errorf("detail: %w", err)
	}
	p, wiringErr := wiring.FromEnv(ctx, warmUp)
	if err := errors.Join(err, wiringErr); err != nil {
		return nil, err
	}
	return NewDetail(p, e.Link).Serve, nil
}

// openAvailability builds Availability from the environment.
func openAvailability(ctx context.Context, warmUp *lifecycle.WarmUp) (web.Handler, error) {
	p, err := wiring.FromEnv(ctx, warmUp)
	if err != nil {
		return nil, err
	}
	return NewAvailability(p).Serve, nil
}

// NewDetail returns the handler of GET /hotels/{propertyId}. link is the booking URL in the page.
// NewDetail does no I/O and cannot fail.
func NewDetail(p *wiring.Deps, link handoff.Link) *Detail {
	return &Detail{newCachedHandler(p), p.Keys, p.Upstreams, p.Compose, p.Region, link}
}

// NewAvailability returns the handler of GET /hotels/{propertyId}/availability. NewAvailability
// does no I/O and cannot fail.
func NewAvailability(p *wiring.Deps) *Availability {
	return &Availability{newCachedHandler(p), p.Keys, p.Upstreams, p.Compose}
}

func newCachedHandler(p *wiring.Deps) cachedHandler { return cachedHandler{p.Guests, p.Cache, p.Now} }
