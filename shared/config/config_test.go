package config

import (
	"strings"
	"testing"

	"github.com/caarlos0/env/v11"
	"github.com/google/go-cmp/cmp"
)

// testEnvironment is as a function embeds the settings.
type testEnvironment struct {
	Environment
	Own string `env:"OWN"`
}

func parse(set map[string]string) (f testEnvironment, err error) {
	err = env.ParseWithOptions(&f, env.Options{Environment: set})
	return f, err
}

func TestEnvironment_ParsesWhenEmbedded(t *testing.T) {
	f, err := parse(map[string]string{"REDIS_ADDR": "10.0.0.3:6379", "REDIS_PASSWORD": "secret", "DATABASE_URL": "postgres:///x", "OWN": "more"})
	want := testEnvironment{Own: "more", Environment: Environment{
		Env: "local", RedisAddr: "10.0.0.3:6379", RedisPassword: "secret", DatabaseURL: "postgres:///x", DBName: "melmastoon-bff", DBMaxConns: 4,
	}}
	if diff := cmp.Diff(want, f); err != nil || diff != "" {
		t.Errorf("%v, %s", err, diff)
	}
}

func TestEnvironment_RequiresRedisAddr(t *testing.T) {
	for _, set := range []map[string]string{{}, {"REDIS_ADDR": ""}} {
		if _, err := parse(set); err == nil || !strings.Contains(err.Error(), "REDIS_ADDR") {
			t.Errorf("%v: %v", set, err)
		}
	}
}

func TestEnvironmentPostgres_RequiresExactlyOneDatabase(t *testing.T) {
	for _, e := range []Environment{{}, {DatabaseURL: "postgres:///x", Instance: "p:r:i"}, {Instance: "p:r:i"}} {
		if db, err := e.Postgres(t.Context()); err == nil {
			db.Close()
			t.Errorf("%+v is opened", e)
		}
	}
}
