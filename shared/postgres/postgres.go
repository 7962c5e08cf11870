// Package postgres owns the way to Postgres: how the pool is opened and how long it may make anybody wait. It never
// runs a statement.
package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"cloud.google.com/go/cloudsqlconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says where the database is: either URL, or the three fields of a Cloud SQL instance.
type Config struct {
	URL      string // DATABASE_URL, "postgres://user:password@host:port/database?sslmode=…"; through a pooler: see Open
	Instance string // "project:region:instance"
	User     string // of IAM: a service account without ".gserviceaccount.com"
	Database string
	MaxConns int32 // of this instance of the function; 0: 4
}

const (
	connectWithin = time.Second
	pongWithin    = 200 * time.Millisecond // for a connection that was idle: it may have died while we were frozen
)

// Open makes a pool and dials nothing; what is wrong with the configuration is an error at once, a database that is
// away only when it is asked. A new connection takes at most a second, an answer as long as the caller's context.
//
// Statements are prepared by name, each when a connection first needs it, which costs that one time a round trip. So a
// connection must lead to one session of Postgres. A URL that leads to a pooler which gives out sessions by transaction
// must say default_query_exec_mode=cache_describe, unless the pooler knows of prepared statements, as PgBouncer 1.21
// does.
func Open(ctx context.Context, c Config) (*pgxpool.Pool, error) {
	cfg, err := parse(c)
	if err != nil {
		return nil, err
	}
	if c.Instance != "" {
		if cfg.ConnConfig.DialFunc, err = cloudSQL(ctx, c.Instance); err != nil {
			return nil, err
		}
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("postgres: open: %w", err)
	}
	return pool, nil
}

func parse(c Config) (*pgxpool.Config, error) {
	url := c.URL
	switch {
	case c.URL != "" && c.Instance != "":
		return nil, errors.New("postgres: DATABASE_URL and CLOUDSQL_INSTANCE are both set")
	case c.URL == "" && c.Instance == "":
		return nil, errors.New("postgres: one of DATABASE_URL and CLOUDSQL_INSTANCE must be set")
	case c.Instance != "" && (c.User == "" || c.Database == ""):
		return nil, errors.New("postgres: CLOUDSQL_INSTANCE needs a user and a database")
	case c.Instance != "":
		// Neither the address nor TLS is pgx's business there: the dialler has both.
		url = "host=127.0.0.1 sslmode=disable"
	}
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("postgres: read the configuration: %w", err) // pgx keeps the password to itself
	}
	if c.Instance != "" {
		cfg.ConnConfig.User, cfg.ConnConfig.Database = c.User, c.Database
	}
	cfg.ConnConfig.ConnectTimeout = connectWithin
	cfg.ConnConfig.Tracer = spans{}
	cfg.ConnConfig.RuntimeParams["application_name"] = "bff-consumer"
	cfg.PingTimeout = pongWithin
	cfg.MaxConns = cmp.Or(c.MaxConns, 4)
	cfg.MinConns, cfg.MinIdleConns = 0, 0 // whatever the URL asks for: nothing is dialled before it is needed
	cfg.MaxConnIdleTime = 5 * time.Minute
	cfg.MaxConnLifetime = 30 * time.Minute
	cfg.MaxConnLifetimeJitter = 5 * time.Minute
	return cfg, nil
}

// cloudSQL dials an instance with the credentials of the environment; it looks for them now and calls nobody.
func cloudSQL(ctx context.Context, instance string) (func(context.Context, string, string) (net.Conn, error), error) {
	dialer, err := cloudsqlconn.NewDialer(ctx,
		cloudsqlconn.WithIAMAuthN(),
		cloudsqlconn.WithLazyRefresh(),                                    // a timer does not run while the instance is frozen
		cloudsqlconn.WithBuiltInMetrics(false),                            // a client and a goroutine for metrics nobody reads
		cloudsqlconn.WithDefaultDialOptions(cloudsqlconn.WithPrivateIP()), // by the network that Redis is on
	)
	if err != nil {
		return nil, fmt.Errorf("postgres: prepare to dial %s: %w", instance, err)
	}
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer.Dial(ctx, instance) }, nil
}
