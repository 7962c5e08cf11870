// Package postgres owns the way to Postgres: how the pool is opened and how long it may make anybody wait. It never
// runs a statement. It does not link Google's connector, which would be most of a cold start: a program that goes by it
// imports package connector.
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

// Config says where the database is: either URL, or a Cloud SQL instance.
type Config struct {
	URL      string // DATABASE_URL, "postgres://user:password@host:port/database?sslmode=…"; through a pooler: see Open
	Instance string // "project:region:instance"
	Address  string // of the instance, "host:port" in our network; and
	ServerCA string // the certificates of its authority, PEM: for a program without the connector
	User     string // of IAM: a service account without ".gserviceaccount.com"
	Database string
	MaxConns int32 // of this instance of the function; 0: 4
}

// Connector prepares to dial an instance, with credentials of its own. Package connector sets it, like a database driver. A program
// in which it is nil reaches an instance directly.
var Connector func(ctx context.Context, instance string) (pgconn.DialFunc, error)

const (
	connectTimeout = time.Second
	pingTimeout    = 200 * time.Millisecond // for a connection that was idle: it may have died while we were frozen
)

// Open makes a pool and dials nothing; what is wrong with the configuration is an error at once, a database that is
// away only when it is asked. A new connection takes at most a second, an answer as long as the caller's context.
//
// Statements are prepared by name, each when a connection first needs it, which costs that one time a round trip. So a
// connection must lead to one session of Postgres. A URL that leads to a pooler which gives out sessions by transaction
// must say default_query_exec_mode=cache_describe, unless the pooler knows of prepared statements, as PgBouncer 1.21
// does.
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
		// The dialler, or direct, has the address and TLS.
		url = "host=127.0.0.1 sslmode=disable"
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("postgres: read the configuration: %w", err) // pgx keeps the password to itself
	}
	if c.Instance != "" {
		cfg.ConnConfig.User, cfg.ConnConfig.Database = c.User, c.Database
	}
	cfg.ConnConfig.ConnectTimeout = connectTimeout
	cfg.ConnConfig.Tracer = queryTracer{}
	cfg.ConnConfig.RuntimeParams["application_name"] = "bff-consumer"
	cfg.PingTimeout = pingTimeout
	cfg.MaxConns = cmp.Or(c.MaxConns, 4)
	cfg.MinConns, cfg.MinIdleConns = 0, 0 // whatever the URL asks for: nothing is dialled before it is needed
	cfg.MaxConnIdleTime = 5 * time.Minute
	cfg.MaxConnLifetime = 30 * time.Minute
	cfg.MaxConnLifetimeJitter = 5 * time.Minute
	return cfg, nil
}
