// Package config owns the environment variables that functions have in common, and the client
// of Redis. It parses and constructs, and never dials.
package config

import (
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
)

// Environment is the configuration of a function with both stores. Functions embed Environment into
// an environment struct of their own. A function with Postgres only reads a postgres.Config
// instead, and does not link the Redis client.
type Environment struct {
	Env           string `env:"ENVIRONMENT" envDefault:"local"` // first part of every Redis key
	RedisAddr     string `env:"REDIS_ADDR,required,notEmpty"`   // host:port, or the path of a Unix socket
	RedisPassword string `env:"REDIS_PASSWORD"`                 // of Memorystore with AUTH
	Postgres      postgres.Config
	Revision      string `env:"K_REVISION"` // set by Cloud Run
}

// Redis returns a new client, with a pool of its own of at most 32 connections, without dialling.
// See redisclient.Open for its time limits. The caller closes the client. Redis never fails: a
// wrong address or password fails the commands.
func (e Environment) Redis() redis.UniversalClient {
	return redisclient.Open(redisclient.Config{Addr: e.RedisAddr, Password: e.RedisPassword})
}
