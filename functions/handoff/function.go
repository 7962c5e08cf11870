// Package handoff owns POST /handoff: minting the signed token for a guest's way to a tenant's
// booking page. Package shared/handoff owns the token's format and keys, shared/handoff/ledger the
// table. This package never consumes a token.
package handoff

import (
	"context"
	"errors"
	"fmt"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // required by the platform build
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
	"github.com/caarlos0/env/v11"

	"melmastoon.ghasi.io/bff-consumer/shared/gate"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/idempotency"
	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	_ "melmastoon.ghasi.io/bff-consumer/shared/postgres/connector"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
)

func init() {
	functions.HTTP("Handoff", web.Register("Handoff", "POST "+web.BasePath+"/handoff", open))
}

// environment holds the settings of this function besides wiring.Environment.
type environment struct {
	// signs tokens, the active key first; see handoff.ParseKeys
	Keys handoff.Keys `env:"HANDOFF_KEYS,required"`
	// booking URL with {tenantSlug}; default: handoff.DefaultLink
	Link handoff.Link `env:"HANDOFF_LINK"`
}

// open builds Handoff from the environment. Reports all missing or malformed settings at once.
func open(ctx context.Context, warmUp *lifecycle.WarmUp) (web.Handler, error) {
	e, err := env.ParseAs[environment]()
	if err != nil {
		err = fmt.Errorf("handoff: %w", err)
	}
	p, wiringErr := wiring.FromEnvWithPostgres(ctx, warmUp)
	if err := errors.Join(err, wiringErr); err != nil {
		return nil, err
	}
	return New(p, e.Keys, e.Link).Serve, nil
}

// New returns the handler. keys signs the tokens; link is the booking URL for the tokens. New does
// no I/O and cannot fail.
func New(p *wiring.Deps, keys handoff.Keys, link handoff.Link) *Mint {
	return &Mint{
		guests: p.Guests.WithClass(gate.Handoff), cache: p.Cache, parts: p.Compose, idempotency: idempotency.New(p.Redis, p.DB, p.Keys, p.Now),
		keys: keys, link: link, now: p.Now,
	}
}
