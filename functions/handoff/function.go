// Package handoff is the front door through which a guest leaves for a tenant's booking page. It registers its entry
// point and builds it.
package handoff

import (
	"context"
	"errors"
	"fmt"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // the platform's packer demands it
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

// environment is what this function reads beside setup.Environment.
type environment struct {
	Keys handoff.Keys `env:"HANDOFF_KEYS,required"` // signs tokens, the active key first; see handoff.ParseKeys
	Link handoff.Link `env:"HANDOFF_LINK"`          // where guests book, with {tenantSlug} in it; handoff.DefaultLink
}

func open(ctx context.Context, warmUp *lifecycle.WarmUp) (web.Handler, error) {
	e, err := env.ParseAs[environment]()
	if err != nil {
		err = fmt.Errorf("handoff: %w", err)
	}
	p, setupErr := wiring.FromEnvWithPostgres(ctx, warmUp)
	if err := errors.Join(err, setupErr); err != nil {
		return nil, err
	}
	mint := New(p, e.Keys, e.Link)
	return mint.Serve, nil
}

// New makes the handler from the rooms and the keys it signs with.
func New(p *wiring.Deps, keys handoff.Keys, link handoff.Link) *Mint {
	return &Mint{
		guests: p.Guests.WithClass(gate.Handoff), cache: p.Cache, parts: p.Compose, idempotency: idempotency.New(p.Redis, p.DB, p.Keys, p.Now),
		keys: keys, link: link, now: p.Now,
	}
}
