// Package consume is the private door through which a tenant's BFF uses a handoff, once. It registers its entry point
// and builds it.
package consume

import (
	"context"
	"fmt"
	"time"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // the platform's packer demands it
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
	"github.com/caarlos0/env/v11"

	"melmastoon.ghasi.io/bff-consumer/shared/config"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	_ "melmastoon.ghasi.io/bff-consumer/shared/postgres/connector"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/serviceauth"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func init() {
	functions.HTTP("Consume", web.Register("Consume", "POST /internal/handoff/{id}/consume", open))
}

// environment is what this function reads.
type environment struct {
	config.Environment
	Peppers keyring.Ring `env:"PEPPERS,required"`      // hashes addresses, newest first
	Keys    handoff.Keys `env:"HANDOFF_KEYS,required"` // verifies tokens; see handoff.ParseKeys

	// Whose Google ID tokens are let in; see caller.Config.
	Issuer     string   `env:"CALLER_ISSUER" envDefault:"https://accounts.google.com"`
	IssuerKeys string   `env:"CALLER_KEYS" envDefault:"https://www.googleapis.com/oauth2/v3/certs"`
	Audience   string   `env:"CALLER_AUDIENCE,required"`
	Accounts   []string `env:"CALLER_ACCOUNTS,required"` // service accounts, comma between them
}

func open(ctx context.Context, warmUp *lifecycle.WarmUp) (web.Handler, error) {
	e, err := env.ParseAs[environment]()
	if err != nil {
		return nil, fmt.Errorf("consume: %w", err)
	}
	c, err := build(ctx, e, time.Now)
	if err != nil {
		return nil, err
	}
	warmUp.Dial("postgres", c.db.Ping)
	return c.Serve, nil
}

func build(ctx context.Context, e environment, now func() time.Time) (*Consume, error) {
	callers, err := serviceauth.New(serviceauth.Config{Issuer: e.Issuer, KeySource: e.IssuerKeys, Audience: e.Audience, Accounts: e.Accounts}, now)
	if err != nil {
		return nil, err
	}
	db, err := e.Postgres(ctx)
	if err != nil {
		return nil, err
	}
	return &Consume{
		callers: callers, keys: e.Keys, db: db, now: now,
		replays: replayReporter{
			rdb: e.Redis(), keys: redisclient.Keys{Env: e.Env},
			peppers: e.Peppers, instance: event.NewInstanceName(e.Revision),
		},
	}, nil
}
