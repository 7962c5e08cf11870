// Package postgres owns the connection to Postgres: the pool, its time limits, tracing, and the
// classification of errors. It never runs a statement. It does not link Google's connector, whose
// start-up would be most of a cold start; programs that need the connector import package
// connector.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config locates the database, either by URL or by a Cloud SQL instance. The tags name the
// environment variables that functions read it from.
type Config struct {
	// "postgres://user:password@host:port/database?sslmode=…"; see Open for poolers
	URL      string `env:"DATABASE_URL"`
	Instance string `env:"CLOUDSQL_INSTANCE"` // "project:region:instance"
	// private "host:port" of the instance; required without the connector
	Address string `env:"CLOUDSQL_ADDRESS"`
	// PEM certificates of the instance's authority; required without the connector
	ServerCA string `env:"CLOUDSQL_CA"`
	User     string `env:"CLOUDSQL_USER"` // IAM user: a service account without ".gserviceaccount.com"
	Database string `env:"CLOUDSQL_DATABASE" envDefault:"melmastoon-bff"`
	MaxConns int32  `env:"DATABASE_MAX_CONNS" envDefault:"4"` // size of the pool; 0 means 4
}

// Connector returns the dial function for a Cloud SQL instance ("project:region:instance") and its
// own credentials. Package connector sets the variable in init, as a database driver registers
// itself. If the variable is nil, Open connects to Config.Address directly.
var Connector func(ctx context.Context, instance string) (pgconn.DialFunc, error)

const (
	connectTimeout = time.Second
	// check of an idle connection, which may have died while the instance was frozen
	pingTimeout = 200 * time.Millisecond
)

// Open creates a pool without dialling, and a goroutine that closes idle connections until the pool
// is closed. It returns an error for invalid configuration only; an unreachable database fails the
// first statement. The pool is safe for concurrent use.
//
// A statement waits as long as the caller's context for a free connection and for the result,
// without limit if the context has no deadline; the end of the context during a statement breaks
// the connection. A new connection takes at most 1 s per address, and with Config.Address before
// that at most 1 s for an access token unless a token is cached. A connection idle for more than 1
// s costs a round trip for a check of at most 200 ms; the pool replaces a dead connection. The pool
// repeats no statement.
//
// A connection prepares each statement by name at its first use, which costs one extra round trip.
// A connection must therefore lead to one Postgres session. For a pooler in transaction mode the
// URL must set default_query_exec_mode=cache_describe, unless the pooler supports prepared
// statements (PgBouncer from 1.21 on).
func Open(ctx context.Context, c Config) (*pgxpool.Pool, error) {
	cfg, err := parseConfig(c)
	if err != nil {
		return nil, err
	}
	switch {
	case c.Instance == "":
	case Connector == nil:
		err = configureDirect(cfg, c)
	default:
		cfg.ConnConfig.DialFunc, err = Connector(ctx, c.Instance)
	}
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("postgres: open: %w", err)
	}
	return pool, nil
}

func parseConfig(c Config) (*pgxpool.Config, error) {
	url := c.URL
	switch {
	case c.URL != "" && c.Instance != "":
		return nil, errors.New("postgres: DATABASE_URL and CLOUDSQL_INSTANCE are both set")
	case c.URL == "" && c.Instance == "":
		return nil, errors.New("postgres: one of DATABASE_URL and CLOUDSQL_INSTANCE must be set")
	case c.Instance != "" && (c.User == "" || c.Database == ""):
		return nil, errors.New("postgres: CLOUDSQL_INSTANCE needs a user and a database")
	case c.Instance != "":
		// Connector or configureDirect sets the address and TLS.
		url = "host=127.0.0.1 sslmode=disable"
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		// pgx leaves the password out of the error
		return nil, fmt.Errorf("postgres: read the configuration: %w", err)
	}
	if c.Instance != "" {
		cfg.ConnConfig.User, cfg.ConnConfig.Database = c.User, c.Database
	}
	cfg.ConnConfig.ConnectTimeout = connectTimeout
	cfg.ConnConfig.Tracer = queryTracer{}
	cfg.ConnConfig.RuntimeParams["application_name"] = "bff-consumer"
	cfg.PingTimeout = pingTimeout
	cfg.MaxConns = cmp.Or(c.MaxConns, 4)
	cfg.MinConns, cfg.MinIdleConns = 0, 0 // overrides the URL: no connection is dialled before its first use
	cfg.MaxConnIdleTime = 5 * time.Minute
	cfg.MaxConnLifetime = 30 * time.Minute
	cfg.MaxConnLifetimeJitter = 5 * time.Minute
	return cfg, nil
}
