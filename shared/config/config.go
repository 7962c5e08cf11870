// Package basis owns the settings that functions have in common, those behind the private doors included, and opens the
// two stores they name. It parses and constructs; it dials nothing.
package config

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
)

// Environment is embedded in what a function reads.
type Environment struct {
	Env           string `env:"ENVIRONMENT" envDefault:"local"` // first part of every Redis key
	RedisAddr     string `env:"REDIS_ADDR,required,notEmpty"`   // host:port, or the path of a socket
	RedisPassword string `env:"REDIS_PASSWORD"`                 // of Memorystore with AUTH
	DatabaseURL   string `env:"DATABASE_URL"`                   // or those below
	Instance      string `env:"CLOUDSQL_INSTANCE"`              // project:region:instance
	DBAddress     string `env:"CLOUDSQL_ADDRESS"`               // host:port; it and the next are for programs without the connector
	DBServerCA    string `env:"CLOUDSQL_CA"`                    // PEM
	DBUser        string `env:"CLOUDSQL_USER"`                  // IAM user
	DBName        string `env:"CLOUDSQL_DATABASE" envDefault:"melmastoon-bff"`
	DBMaxConns    int32  `env:"DATABASE_MAX_CONNS" envDefault:"4"`
	Revision      string `env:"K_REVISION"` // set by the platform
}

// Postgres opens the pool.
func (e Environment) Postgres(ctx context.Context) (*pgxpool.Pool, error) {
	return postgres.Open(ctx, postgres.Config{
		URL: e.DatabaseURL, Instance: e.Instance, Address: e.DBAddress, ServerCA: e.DBServerCA, User: e.DBUser, Database: e.DBName,
		MaxConns: e.DBMaxConns,
	})
}

// Redis makes the client.
func (e Environment) Redis() redis.UniversalClient {
	return redisclient.Open(redisclient.Config{Addr: e.RedisAddr, Password: e.RedisPassword})
}
