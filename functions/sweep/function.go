// Package sweep deletes rows after their retention, and ends idle sessions. Each rule has an entry
// point, triggered by Cloud Scheduler once a day. The package never deletes a row that a guest or
// an operator still uses: the rules are in docs/spec/data-model.md#retention.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	// the platform's packer demands it
	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
	"github.com/caarlos0/env/v11"

	"melmastoon.ghasi.io/bff-consumer/shared/config"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	_ "melmastoon.ghasi.io/bff-consumer/shared/postgres/connector"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func init() {
	for _, r := range retentions {
		register(r.name, r.path, func(ctx context.Context) (job, error) {
			e, err := env.ParseAs[postgres.Config]()
			if err != nil {
				return nil, err
			}
			db, err := openDatabase(ctx, e)
			return tableSweeper{db, r}, err
		})
	}
	register("SweepSessions", "sweep-sessions", func(ctx context.Context) (job, error) {
		e, err := env.ParseAs[config.Environment]()
		if err != nil {
			return nil, err
		}
		db, err := openDatabase(ctx, e.Postgres)
		return &sessionSweeper{
			rdb: e.Redis(), db: db, keys: redisclient.Keys{Env: e.Env}, instance: event.NewInstanceName(e.Revision),
		}, err
	})
}

// schedule is the configuration of every entry point, besides its stores.
type schedule struct {
	Run time.Duration `env:"SWEEP_RUN" envDefault:"5m"` // a run starts no batch after this time; at most 9m
}

// ackDeadline is the ack deadline of the tick's subscription: Pub/Sub delivers the tick again after
// this time.
const ackDeadline = 590 * time.Second

// register registers an entry point. build is called when the function opens, constructs the job
// and dials nothing. Opening fails for missing or invalid settings.
func register(name, path string, build func(context.Context) (job, error)) {
	functions.HTTP(name, web.RegisterInternal(name, "POST /internal/jobs/"+path, ackDeadline, func(ctx context.Context, _ *lifecycle.WarmUp) (web.Handler, error) {
		s, err := env.ParseAs[schedule]()
		if err == nil && (s.Run <= 0 || s.Run > ackDeadline-50*time.Second) {
			err = errors.New("SWEEP_RUN must be more than 0 and at most 9m")
		}
		j, buildErr := build(ctx)
		if err := errors.Join(err, buildErr); err != nil {
			return nil, fmt.Errorf("sweep: %w", err)
		}
		return (&Sweep{job: j, maxDuration: s.Run, now: time.Now}).Serve, nil
	}))
}

// openDatabase opens a pool of one connection: a sweep sends one statement at a time.
func openDatabase(ctx context.Context, c postgres.Config) (database, error) {
	c.MaxConns = 1
	return postgres.Open(ctx, c)
}
