// Package sweep ends what has lived long enough: rows past their retention, and sessions gone quiet. It registers its
// entry points, one for each rule, and builds them; none of them knows what the rows mean.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // the platform's packer demands it
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
	"github.com/caarlos0/env/v11"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	_ "melmastoon.ghasi.io/bff-consumer/shared/postgres/connector"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func init() {
	for _, r := range retentions {
		register(r.name, r.path, func(ctx context.Context, e environment) (job, error) {
			db, err := e.openDatabase(ctx)
			return tableSweeper{db, r}, err
		})
	}
	register("SweepSessions", "sweep-sessions", func(ctx context.Context, e environment) (job, error) {
		if e.RedisAddr == "" {
			return nil, errors.New("sweep: REDIS_ADDR must be set")
		}
		db, err := e.openDatabase(ctx)
		return &sessionSweeper{
			rdb: redisclient.Open(redisclient.Config{Addr: e.RedisAddr, Password: e.RedisPassword}),
			db:  db, keys: redisclient.Keys{Env: e.Env}, instance: event.NewInstanceName(e.Revision),
		}, err
	})
}

// environment is what these functions read; the settings shared with others are described in basis.Environment.
// It is not embedded: the sweeps of tables need no Redis, and one connection is enough.
type environment struct {
	Env           string        `env:"ENVIRONMENT" envDefault:"local"`
	RedisAddr     string        `env:"REDIS_ADDR"` // of SweepSessions alone
	RedisPassword string        `env:"REDIS_PASSWORD"`
	DatabaseURL   string        `env:"DATABASE_URL"`
	Instance      string        `env:"CLOUDSQL_INSTANCE"`
	DBUser        string        `env:"CLOUDSQL_USER"`
	DBName        string        `env:"CLOUDSQL_DATABASE" envDefault:"melmastoon-bff"`
	Revision      string        `env:"K_REVISION"`
	Run           time.Duration `env:"SWEEP_RUN" envDefault:"5m"` // after which a run ends, finished or not; at most 9m
}

// ackDeadline is that of the broker, which delivers the tick again to whoever takes longer.
const ackDeadline = 590 * time.Second

func register(name, path string, build func(context.Context, environment) (job, error)) {
	functions.HTTP(name, web.RegisterInternal(name, "POST /internal/jobs/"+path, ackDeadline, func(ctx context.Context, _ *lifecycle.WarmUp) (web.Handler, error) {
		e, err := env.ParseAs[environment]()
		if err != nil {
			return nil, fmt.Errorf("sweep: %w", err)
		}
		if e.Run <= 0 || e.Run > ackDeadline-50*time.Second {
			return nil, errors.New("sweep: SWEEP_RUN must be from 1ns to 9m")
		}
		j, err := build(ctx, e)
		if err != nil {
			return nil, err
		}
		return (&Sweep{job: j, maxDuration: e.Run, now: time.Now}).Serve, nil
	}))
}

func (e environment) openDatabase(ctx context.Context) (database, error) {
	return postgres.Open(ctx, postgres.Config{URL: e.DatabaseURL, Instance: e.Instance, User: e.DBUser, Database: e.DBName, MaxConns: 1})
}
