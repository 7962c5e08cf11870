// Package wiring reads the environment of guest-facing functions and constructs their dependencies.
// Packages web and otlp read their own variables. It never dials, except through the warm-up of a
// process that is about to listen; see lifecycle.WarmUp.
package wiring

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/bot"
	"melmastoon.ghasi.io/bff-consumer/shared/bot/crawler"
	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/challenge"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/config"
	"melmastoon.ghasi.io/bff-consumer/shared/erasure"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/flags"
	"melmastoon.ghasi.io/bff-consumer/shared/gate"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/idempotency"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/ratelimit"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

// Environment is the configuration of every guest-facing function. Parsing reports all missing and
// malformed variables at once.
type Environment struct {
	config.Environment
	Region string `env:"CLOUD_REGION" envDefault:"asia-south1"` // region of this service

	SearchURL   string `env:"SEARCH_URL,required,notEmpty"`
	PricingURL  string `env:"PRICING_URL,required,notEmpty"`
	PropertyURL string `env:"PROPERTY_URL,required,notEmpty"`
	ThemeURL    string `env:"THEME_URL,required,notEmpty"`
	// google: ID tokens; none: for the development server
	UpstreamAuth string `env:"UPSTREAM_AUTH" envDefault:"google"`

	SessionKeys keyring.Ring `env:"SESSION_KEYS,required,notEmpty"` // signs session ids, newest first
	// hashes addresses and fingerprints, newest first
	Peppers keyring.Ring `env:"PEPPERS,required,notEmpty"`

	Recaptcha challenge.Config

	FlagsFile string `env:"FLAGS_FILE"` // for the development server; otherwise
	// Remote Config of this project; without both, the defaults
	FlagsProject string `env:"REMOTE_CONFIG_PROJECT"`
	// validate every event before writing it; only in programs that link event/strict
	ValidateEvents bool `env:"VALIDATE_EVENTS"`

	DNS crawler.Resolver `env:"-"` // verifies the addresses of search engines; nil: the system's resolver
}

// Deps are the dependencies of a guest-facing function. Function packages use it in construction
// only. All members are safe for concurrent use.
type Deps struct {
	Region    string
	Keys      redisclient.Keys
	Redis     redis.UniversalClient
	DB        *pgxpool.Pool
	Cache     *cache.Cache
	Sessions  *session.Store
	Tenants   *tenants.SuspensionCache
	Guests    *guest.Controller
	Upstreams *upstream.Upstreams
	Compose   *compose.Fetcher
	Outbox    *outbox.Recorder
	Eraser    *erasure.Eraser
	Flags     *flags.Source
	Now       func() time.Time
}

// FromEnv parses the environment and constructs the dependencies, with time.Now as the clock; see
// New. Only the warm-up dials, in goroutines; an unreachable store is no error. The error of
// parsing names every missing or malformed variable of Environment; an error of New may name the
// first wrong setting only. The dependencies are nil with an error.
func FromEnv(ctx context.Context, warmUp *lifecycle.WarmUp) (*Deps, error) {
	e, err := env.ParseAs[Environment]()
	if err != nil {
		return nil, fmt.Errorf("wiring: %w", err)
	}
	return New(ctx, e, time.Now, warmUp)
}

// FromEnvWithPostgres is FromEnv for a function that rejects guests without Postgres: the warm-up
// also connects to Postgres, in a goroutine. A failed connection is logged by the warm-up and not
// an error; FromEnvWithPostgres fails only for invalid configuration, as FromEnv does, and a nil
// warmUp dials nothing.
func FromEnvWithPostgres(ctx context.Context, warmUp *lifecycle.WarmUp) (*Deps, error) {
	p, err := FromEnv(ctx, warmUp)
	if err != nil {
		return nil, err
	}
	warmUp.Dial("postgres", p.DB.Ping)
	return p, nil
}

// New constructs the dependencies. now is the clock of all dependencies except the two stores. The
// warm-up connects to Redis, because every request of a guest needs Redis, and loads the suspended
// tenants, in a goroutine for which New does not wait; with a nil warmUp nothing is dialled. New
// reads FlagsFile, if set, and starts a goroutine of the Postgres pool; memory grows with the use
// of the dependencies. Each call makes new connection pools: call it once per function.
//
// New returns an error for the first invalid setting only, never for an unreachable store: the
// warm-up logs a failed dial, and later the store's commands fail. After an error the pools already
// made and a dial already started are not closed: the process should exit.
func New(ctx context.Context, e Environment, now func() time.Time, warmUp *lifecycle.WarmUp) (*Deps, error) {
	if e.ValidateEvents && event.Validator == nil {
		return nil, errors.New("wiring: VALIDATE_EVENTS is set, but this program does not link the schemas of package event/strict")
	}
	db, err := postgres.Open(ctx, e.Postgres)
	if err != nil {
		return nil, fmt.Errorf("wiring: %w", err)
	}
	rdb, keys := e.Redis(), redisclient.Keys{Env: e.Env}
	suspended := tenants.New(rdb, db, keys, now)
	warmUp.Dial("redis", suspended.Preload)
	up, err := newUpstreams(e)
	if err != nil {
		return nil, err
	}
	name := event.NewInstanceName(e.Revision) // names this process in events and locks
	p := &Deps{
		Region: e.Region, Keys: keys, Redis: rdb, DB: db, Upstreams: up, Flags: newFlagSource(e), Now: now,
		Cache:    cache.New(rdb, keys, now, name),
		Sessions: session.New(keys, e.SessionKeys, e.Peppers, db, now),
		Tenants:  suspended,
	}
	p.Compose = compose.New(rdb, keys, p.Cache, up)
	p.Outbox = newRecorder(e, db, rdb, keys)
	p.Eraser = erasure.New(rdb, db, p.Sessions, idempotency.New(rdb, db, keys, now), p.Outbox)
	admission, err := newGate(e, p, name)
	if err != nil {
		return nil, err
	}
	p.Guests = guest.New(rdb, admission, p.Sessions, p.Tenants, p.Outbox, p.Eraser, name)
	return p, nil
}

// newGate constructs the rate limits, the bot detector and the challenges behind one gate.
func newGate(e Environment, p *Deps, instance string) (*gate.Gate, error) {
	recaptcha, err := challenge.Open(e.Recaptcha, p.Now)
	if err != nil {
		return nil, fmt.Errorf("wiring: %w", err)
	}
	var dns crawler.Resolver = net.DefaultResolver
	if e.DNS != nil {
		dns = e.DNS
	}
	limits := ratelimit.New(p.Redis, p.Keys, p.Flags, p.Now)
	bots := bot.New(p.Keys, crawler.New(dns, p.Now), p.Now)
	challenges := challenge.New(p.Keys, e.SessionKeys, recaptcha, p.Now)
	return gate.New(p.Flags, limits, bots, challenges, p.Outbox, instance, p.Now), nil
}

func newFlagSource(e Environment) *flags.Source {
	switch {
	case e.FlagsFile != "":
		return flags.File(e.FlagsFile)
	case e.FlagsProject != "":
		return flags.RemoteConfig(e.FlagsProject)
	default:
		return flags.Static(*flags.Defaults())
	}
}

func newRecorder(e Environment, db *pgxpool.Pool, rdb redis.UniversalClient, keys redisclient.Keys) *outbox.Recorder {
	r := outbox.NewRecorder(db, rdb, keys)
	if e.ValidateEvents {
		r.Validate = event.Validator
	}
	return r
}

func newUpstreams(e Environment) (*upstream.Upstreams, error) {
	cfg := upstream.Config{SearchURL: e.SearchURL, PricingURL: e.PricingURL, PropertyURL: e.PropertyURL, ThemeURL: e.ThemeURL}
	switch e.UpstreamAuth {
	case "google":
		cfg.Tokens = upstream.GoogleTokenSource{}
	case "none":
	default:
		return nil, errors.New("wiring: UPSTREAM_AUTH must be google or none")
	}
	return upstream.New(cfg)
}
