// Package relay is the private door through which the scheduler lets the outbox be told to others. It registers its
// entry point and builds it.
package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // the platform's packer demands it
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
	"github.com/caarlos0/env/v11"
	"github.com/jackc/pgx/v5/pgxpool"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"melmastoon.ghasi.io/bff-consumer/shared/config"
	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const (
	maxRunDuration = time.Minute
	// finishTimeout is for what a run has begun: the last requests and their marks, and the report.
	finishTimeout = 20 * time.Second
)

func init() {
	functions.HTTP("Relay", web.RegisterInternal("Relay", "POST /internal/jobs/relay", maxRunDuration+finishTimeout, open))
}

// environment is what this function reads; MaxConns stands for the number that others have.
type environment struct {
	config.Environment
	MaxConns int32 `env:"RELAY_MAX_CONNS" envDefault:"6"` // one for each worker, one to look for work, one for the spill

	Project  string        `env:"PUBSUB_PROJECT,required"` // of the topics; PUBSUB_EMULATOR_HOST is read by the library
	Endpoint string        `env:"PUBSUB_ENDPOINT"`         // host:port of one region: Pub/Sub keeps the order of a key within a region only
	Run      time.Duration `env:"RELAY_RUN" envDefault:"57s"`
	Workers  int           `env:"RELAY_WORKERS" envDefault:"4"` // lanes drained at once
}

func open(ctx context.Context, warmUp *lifecycle.WarmUp) (web.Handler, error) {
	r, err := Open(ctx, warmUp)
	if err != nil {
		return nil, err
	}
	return r.Serve, nil
}

// Open builds the relay from the environment. It dials nothing, unless the process is about to listen (web.Ahead).
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
		return nil, fmt.Errorf("relay: RELAY_RUN is %s, not up to %s", e.Run, maxRunDuration)
	case e.Workers < 1 || int32(e.Workers)+2 > e.MaxConns:
		return nil, errors.New("relay: RELAY_WORKERS must be at least 1, and RELAY_MAX_CONNS two more than it")
	}
	e.DBMaxConns = e.MaxConns
	db, err := e.Postgres(ctx)
	if err != nil {
		return nil, err
	}
	warmUp.Dial("postgres", func(ctx context.Context) error { // a Ping would be a round trip more
		return db.AcquireFunc(ctx, func(*pgxpool.Conn) error { return nil })
	})
	rdb := e.Redis()
	warmUp.Dial("redis", func(ctx context.Context) error { return rdb.Ping(ctx).Err() })
	broker, err := newBrokerClient(ctx, e.Endpoint) // takes a while, in which the stores answer
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

// newBrokerClient makes a client of the broker; the first request connects it. Requests are not repeated by the library: what is
// sent again, and after what, is decided here.
func newBrokerClient(ctx context.Context, endpoint string) (*pubsub.TopicAdminClient, error) {
	options := []option.ClientOption{
		// By default a broker that was away for long is looked for every two minutes.
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
