// Package setup owns what the functions read from their environment (packages web and telemetry read
// their own settings) and how the rooms are put together from it. It parses and constructs; it dials nothing, unless the
// process is about to listen (web.Ahead).
package setup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/caarlos0/env/v11"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/admission"
	"melmastoon.ghasi.io/bff-consumer/shared/bot"
	"melmastoon.ghasi.io/bff-consumer/shared/bot/crawler"
	"melmastoon.ghasi.io/bff-consumer/shared/burial"
	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/challenge"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/flags"
	"melmastoon.ghasi.io/bff-consumer/shared/idempotency"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/ratelimit"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/setup/basis"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Environment is the wiring every guest-facing function shares. Missing and malformed settings are all
// named at once.
type Environment struct {
	basis.Environment
	Region string `env:"CLOUD_REGION" envDefault:"asia-south1"` // where this service runs

	SearchURL    string `env:"SEARCH_URL,required,notEmpty"`
	PricingURL   string `env:"PRICING_URL,required,notEmpty"`
	PropertyURL  string `env:"PROPERTY_URL,required,notEmpty"`
	ThemeURL     string `env:"THEME_URL,required,notEmpty"`
	UpstreamAuth string `env:"UPSTREAM_AUTH" envDefault:"google"` // google: ID tokens; none: the local system

	SessionKeys keyring.Ring `env:"SESSION_KEYS,required,notEmpty"` // signs session ids, newest first
	Peppers     keyring.Ring `env:"PEPPERS,required,notEmpty"`      // hashes addresses and fingerprints, newest first

	Recaptcha challenge.Config

	FlagsFile      string `env:"FLAGS_FILE"`            // local; else
	FlagsProject   string `env:"REMOTE_CONFIG_PROJECT"` // Remote Config of this project; neither: the defaults
	ValidateEvents bool   `env:"VALIDATE_EVENTS"`       // hold every event against its schema before it is written; only where event/strict is linked

	DNS crawler.Resolver `env:"-"` // who is asked whether a search engine is one; nil: the system's resolver
}

// Parts are the rooms a guest-facing function is built from.
type Parts struct {
	Region    string
	Keys      keyspace.Keys
	Redis     redis.UniversalClient
	DB        *pgxpool.Pool
	Cache     *cache.Cache
	Sessions  *session.Room
	Tenants   *tenants.Tenants
	Door      *admission.Door
	Upstreams *upstream.Upstreams
	Compose   *compose.Parts
	Outbox    *outbox.Recorder
	Burial    *burial.Room
	Flags     *flags.Source
	Now       func() time.Time
}

// Guest reads the environment and constructs the rooms.
func Guest(ctx context.Context) (*Parts, error) {
	e, err := env.ParseAs[Environment]()
	if err != nil {
		return nil, fmt.Errorf("setup: %w", err)
	}
	return Build(ctx, e, time.Now)
}

// Keeper is Guest for a function that refuses a guest of whom it can keep no record: its process reaches Postgres before
// its first request, too.
func Keeper(ctx context.Context) (*Parts, error) {
	p, err := Guest(ctx)
	if err != nil {
		return nil, err
	}
	web.Ahead(ctx, "postgres", p.DB.Ping)
	return p, nil
}

// Build constructs the rooms of an environment. now is the clock of everything but the stores. Every guest is let in by
// Redis, so a process that is about to listen reaches it at once, and reads there what each first request would; see
// web.Ahead.
func Build(ctx context.Context, e Environment, now func() time.Time) (*Parts, error) {
	if e.ValidateEvents && event.Judge == nil {
		return nil, errors.New("setup: VALIDATE_EVENTS is set, but this program does not have the schemas: see package event/strict")
	}
	db, err := e.Postgres(ctx)
	if err != nil {
		return nil, fmt.Errorf("setup: %w", err)
	}
	rdb, keys := e.Redis(), keyspace.Keys{Env: e.Env}
	suspended := tenants.New(rdb, db, keys, now)
	web.Ahead(ctx, "redis", suspended.Fetch)
	up, err := openUpstreams(e)
	if err != nil {
		return nil, err
	}
	name := event.Instance(e.Revision) // in events and locks
	p := &Parts{
		Region: e.Region, Keys: keys, Redis: rdb, DB: db, Upstreams: up, Flags: flagsOf(e), Now: now,
		Cache:    cache.New(rdb, keys, now, name),
		Sessions: session.New(keys, e.SessionKeys, e.Peppers, db, now),
		Tenants:  suspended,
	}
	p.Compose = compose.New(rdb, keys, p.Cache, up)
	p.Outbox = recorder(e, db, rdb, keys)
	p.Burial = burial.New(rdb, db, p.Sessions, idempotency.New(rdb, db, keys, now), p.Outbox)
	guard, err := guardOf(e, rdb, p)
	if err != nil {
		return nil, err
	}
	p.Door = admission.New(rdb, p.Sessions, p.Tenants, p.Cache, p.Outbox, p.Burial, guard, name)
	return p, nil
}

// guardOf makes what has a say in who is let in.
func guardOf(e Environment, rdb redis.UniversalClient, p *Parts) (admission.Guard, error) {
	recaptcha, err := challenge.Open(e.Recaptcha, p.Now)
	if err != nil {
		return admission.Guard{}, fmt.Errorf("setup: %w", err)
	}
	var dns crawler.Resolver = net.DefaultResolver
	if e.DNS != nil {
		dns = e.DNS
	}
	return admission.Guard{
		Flags:      p.Flags,
		Limits:     ratelimit.New(rdb, p.Keys, p.Flags, p.Now),
		Bots:       bot.New(p.Keys, crawler.New(dns, p.Now), p.Now),
		Challenges: challenge.New(p.Keys, e.SessionKeys, recaptcha, p.Now),
		Now:        p.Now,
	}, nil
}

func flagsOf(e Environment) *flags.Source {
	switch {
	case e.FlagsFile != "":
		return flags.File(e.FlagsFile)
	case e.FlagsProject != "":
		return flags.RemoteConfig(e.FlagsProject)
	default:
		return flags.Static(*flags.Defaults())
	}
}

func recorder(e Environment, db *pgxpool.Pool, rdb redis.UniversalClient, keys keyspace.Keys) *outbox.Recorder {
	r := outbox.NewRecorder(db, rdb, keys)
	if e.ValidateEvents {
		r.Validate = event.Judge
	}
	return r
}

func openUpstreams(e Environment) (*upstream.Upstreams, error) {
	cfg := upstream.Config{SearchURL: e.SearchURL, PricingURL: e.PricingURL, PropertyURL: e.PropertyURL, ThemeURL: e.ThemeURL}
	switch e.UpstreamAuth {
	case "google":
		cfg.Tokens = upstream.Google{}
	case "none":
	default:
		return nil, errors.New("setup: UPSTREAM_AUTH must be google or none")
	}
	return upstream.New(cfg)
}
