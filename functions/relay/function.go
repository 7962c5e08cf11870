// Package relay publishes the pending events of the outbox to Pub/Sub. Cloud Scheduler triggers
// the relay once a minute. The package owns retries, circuit breakers and consent checks on the way
// out; it never writes events and never delivers messages to subscribers.
//
// relay.go has the run, scheduler.go the choice of shards, batch.go the way of one batch.
package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	// the platform's packer demands it
	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
	"github.com/caarlos0/env/v11"
	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"melmastoon.ghasi.io/bff-consumer/shared/config"
	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const (
	maxRunDuration = time.Minute
	// finishTimeout is for the batches under way at the end of a run, and for the report.
	finishTimeout = 20 * time.Second
)

func init() {
	functions.HTTP("Relay", web.RegisterInternal("Relay", "POST /internal/jobs/relay", maxRunDuration+finishTimeout, open))
}

// environment is the configuration of this function. MaxConns replaces DATABASE_MAX_CONNS.
type environment struct {
	config.Environment
	// a connection for each worker, for polls and for the Redis buffer
	MaxConns int32 `env:"RELAY_MAX_CONNS" envDefault:"6"`

	// of the topics; the Pub/Sub library reads PUBSUB_EMULATOR_HOST
	Project string `env:"PUBSUB_PROJECT,required"`
	// host:port of one region: Pub/Sub keeps the order of a key within a region only
	Endpoint string        `env:"PUBSUB_ENDPOINT"`
	Run      time.Duration `env:"RELAY_RUN" envDefault:"57s"`
	Workers  int           `env:"RELAY_WORKERS" envDefault:"4"` // shards drained at the same time
}

func open(ctx context.Context, warmUp *lifecycle.WarmUp) (web.Handler, error) {
	r, err := Open(ctx, warmUp)
	if err != nil {
		return nil, err
	}
	return r.Serve, nil
}

// Open builds the relay from the environment. Open parses and constructs; the search for Google
// credentials may read a file or ask the metadata server, unless PUBSUB_EMULATOR_HOST is set. Only
// warmUp dials Postgres and Redis, in a process about to listen; the first request dials Pub/Sub.
// Open returns nil and an error for missing or contradictory settings and without credentials.
// Close the relay after use.
func Open(ctx context.Context, warmUp *lifecycle.WarmUp) (*Relay, error) {
	e, err := env.ParseAs[environment]()
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	return build(ctx, e, time.Now, warmUp)
}

func build(ctx context.Context, e environment, now func() time.Time, warmUp *lifecycle.WarmUp) (*Relay, error) {
	switch {
	case e.Run <= 0 || e.Run > maxRunDuration:
		return nil, fmt.Errorf("relay: RELAY_RUN is %s, want more than 0 and at most %s", e.Run, maxRunDuration)
	case e.Workers < 1 || int32(e.Workers)+2 > e.MaxConns:
		return nil, errors.New("relay: RELAY_WORKERS must be at least 1, and RELAY_MAX_CONNS at least RELAY_WORKERS + 2")
	}
	e.Postgres.MaxConns = e.MaxConns
	db, err := postgres.Open(ctx, e.Postgres)
	if err != nil {
		return nil, err
	}
	warmUp.Dial("postgres", func(ctx context.Context) error { // a Ping would cost another round trip
		return db.AcquireFunc(ctx, func(*pgxpool.Conn) error { return nil })
	})
	rdb := e.Redis()
	warmUp.Dial("redis", func(ctx context.Context) error { return rdb.Ping(ctx).Err() })
	broker, err := newBrokerClient(ctx, e.Endpoint) // takes a while; the stores connect meanwhile
	if err != nil {
		db.Close()
		rdb.Close()
		return nil, err
	}
	return &Relay{
		db: db, rdb: rdb, keys: redisclient.Keys{Env: e.Env},
		broker: broker, project: e.Project, runDuration: e.Run, workers: e.Workers, now: now,
	}, nil
}

// newBrokerClient returns a client of Pub/Sub; the first request connects. The retries of the
// library are off: the relay itself decides about the order of repeated rows.
func newBrokerClient(ctx context.Context, endpoint string) (*pubsub.TopicAdminClient, error) {
	options := []option.ClientOption{
		// By default gRPC backs off to two minutes between attempts to connect.
		option.WithGRPCDialOption(grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: requestTimeout,
		})),
	}
	if endpoint != "" {
		options = append(options, option.WithEndpoint(endpoint))
	}
	client, err := pubsub.NewTopicAdminClient(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("relay: prepare to dial the broker: %w", err)
	}
	client.CallOptions.Publish = nil
	return client, nil
}
