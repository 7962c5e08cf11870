package config

import (
	"strings"
	"testing"

	"github.com/caarlos0/env/v11"
	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
)

// testEnvironment embeds the shared settings as a function does.
type testEnvironment struct {
	Environment
	Own string `env:"OWN"`
}

func parse(variables map[string]string) (e testEnvironment, err error) {
	err = env.ParseWithOptions(&e, env.Options{Environment: variables})
	return e, err
}

func TestEnvironment_ParsesWhenEmbedded(t *testing.T) {
	t.Parallel()
	got, err := parse(map[string]string{"REDIS_ADDR": "10.0.0.3:6379", "REDIS_PASSWORD": "secret", "DATABASE_URL": "postgres:///x", "OWN": "more"})
	if err != nil {
		t.Fatal(err)
	}
	want := testEnvironment{Own: "more", Environment: Environment{
		Env: "local", RedisAddr: "10.0.0.3:6379", RedisPassword: "secret",
		Postgres: postgres.Config{URL: "postgres:///x", Database: "melmastoon-bff", MaxConns: 4},
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestEnvironment_RequiresRedisAddr(t *testing.T) {
	t.Parallel()
	for name, variables := range map[string]map[string]string{"missing": {}, "empty": {"REDIS_ADDR": ""}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := parse(variables); err == nil || !strings.Contains(err.Error(), "REDIS_ADDR") {
				t.Errorf("parse: %v, want an error that names REDIS_ADDR", err)
			}
		})
	}
}

func TestEnvironment_PostgresAloneNeedsNoRedis(t *testing.T) {
	t.Parallel()
	got, err := env.ParseAsWithOptions[postgres.Config](env.Options{Environment: map[string]string{"DATABASE_URL": "postgres:///x"}})
	if want := (postgres.Config{URL: "postgres:///x", Database: "melmastoon-bff", MaxConns: 4}); err != nil || got != want {
		t.Errorf("parse: %+v, %v, want %+v", got, err, want)
	}
}

func TestEnvironment_RequiresExactlyOneDatabase(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]postgres.Config{
		"none":             {},
		"two":              {URL: "postgres:///x", Instance: "p:r:i"},
		"no user and name": {Instance: "p:r:i"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if db, err := postgres.Open(t.Context(), c); err == nil {
				db.Close()
				t.Errorf("Open accepts %+v, want an error", c)
			}
		})
	}
}
