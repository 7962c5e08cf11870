// Package migrate migrates the database schema to its newest version and grants access to the other
// functions. A deployment calls the function before rolling out code for the new schema. The
// migrations are in shared/migrations.
package migrate

import (
	"context"
	"fmt"
	"time"

	// the platform's packer demands it
	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
	"github.com/caarlos0/env/v11"

	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	_ "melmastoon.ghasi.io/bff-consumer/shared/postgres/connector"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// requestTimeout allows a migration to rewrite or index a large table. Cloud Run ends a request
// after an hour.
const requestTimeout = 55 * time.Minute

func init() {
	functions.HTTP("Migrate", web.RegisterInternal("Migrate", "POST /internal/migrate", requestTimeout, open))
}

// environment is the configuration of this function.
type environment struct {
	Postgres postgres.Config
	Users    []string `env:"DATABASE_USERS"` // database users of the other functions, separated by commas
}

// open builds the handler from the environment and dials nothing.
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
