// Package consume owns the internal endpoint with which a tenant's BFF consumes a handoff, once.
// Package shared/handoff/ledger owns the table. This package never mints a token and reads no guest
// session.
package consume

import (
	"context"
	"fmt"
	"time"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // required by the platform build
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
	"github.com/caarlos0/env/v11"

	"melmastoon.ghasi.io/bff-consumer/shared/config"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	_ "melmastoon.ghasi.io/bff-consumer/shared/postgres/connector"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/serviceauth"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func init() {
	functions.HTTP("Consume", web.Register("Consume", "POST /internal/handoff/{id}/consume", open))
}

// environment holds the settings of this function.
type environment struct {
	config.Environment
	Peppers keyring.Ring `env:"PEPPERS,required"`      // hashes addresses, newest first
	Keys    handoff.Keys `env:"HANDOFF_KEYS,required"` // verifies tokens; see handoff.ParseKeys

	// The Google ID tokens that are accepted; see serviceauth.Config.
	Issuer     string   `env:"CALLER_ISSUER" envDefault:"https://accounts.google.com"`
	IssuerKeys string   `env:"CALLER_KEYS" envDefault:"https://www.googleapis.com/oauth2/v3/certs"`
	Audience   string   `env:"CALLER_AUDIENCE,required"`
	Accounts   []string `env:"CALLER_ACCOUNTS,required"` // service accounts, separated by commas
}

// open builds Consume from the environment. A process about to listen connects to Postgres first.
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

// build constructs the handler. now is the clock of token checks and use times. It does not dial.
func build(ctx context.Context, e environment, now func() time.Time) (*Consume, error) {
	callers, err := serviceauth.New(serviceauth.Config{Issuer: e.Issuer, KeySource: e.IssuerKeys, Audience: e.Audience, Accounts: e.Accounts}, now)
	if err != nil {
		return nil, err
	}
	db, err := postgres.Open(ctx, e.Postgres)
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
