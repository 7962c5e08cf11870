// Package config owns the environment variables that functions have in common, and the clients of the
// two stores that they name. It parses and constructs; it never dials.
package config

import (
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
)

// Environment is what a function reads that uses both stores. A function embeds it into its own
// environment struct. A function that uses Postgres only reads a postgres.Config instead, and does
// not link the Redis client.
type Environment struct {
	Env           string `env:"ENVIRONMENT" envDefault:"local"` // first part of every Redis key
	RedisAddr     string `env:"REDIS_ADDR,required,notEmpty"`   // host:port, or the path of a socket
	RedisPassword string `env:"REDIS_PASSWORD"`                 // of Memorystore with AUTH
	Postgres      postgres.Config
	Revision      string `env:"K_REVISION"` // set by Cloud Run
}

// Redis returns a client without dialling. See redisclient.Open for its time limits.
func (e Environment) Redis() redis.UniversalClient {
	return redisclient.Open(redisclient.Config{Addr: e.RedisAddr, Password: e.RedisPassword})
}
