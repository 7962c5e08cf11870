// Package migrate is the private door through which whoever deploys brings the schema to its newest step, before the code
// that needs it. It registers its entry point and builds it.
package migrate

import (
	"context"
	"fmt"
	"time"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // the platform's packer demands it
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
	"github.com/caarlos0/env/v11"

	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	_ "melmastoon.ghasi.io/bff-consumer/shared/postgres/connector"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// requestTimeout is for a step that rewrites or indexes a large table; the platform gives a request an hour.
const requestTimeout = 55 * time.Minute

func init() {
	functions.HTTP("Migrate", web.RegisterInternal("Migrate", "POST /internal/migrate", requestTimeout, open))
}

// environment is what this function reads.
type environment struct {
	Postgres postgres.Config
	Users    []string `env:"DATABASE_USERS"` // database users of the other functions, separated by commas
}

func open(ctx context.Context, _ *lifecycle.WarmUp) (web.Handler, error) {
	e, err := env.ParseAs[environment]()
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return build(ctx, e)
}

func build(ctx context.Context, e environment) (web.Handler, error) {
	e.Postgres.MaxConns = 2 // one connection holds the advisory lock
	pool, err := postgres.Open(ctx, e.Postgres)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	return (&Migrate{pool, e.Users}).Serve, nil
}
