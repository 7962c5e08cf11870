// Package connector makes package postgres connect to Cloud SQL through Google's connector.
// Programs import the package for this side effect, as a database driver. The package links gRPC
// and a client of the SQL Admin API (decision 39).
package connector

import (
	"context"
	"fmt"
	"net"

	"cloud.google.com/go/cloudsqlconn"
	"github.com/jackc/pgx/v5/pgconn"

	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
)

func init() { postgres.Connector = newDialFunc }

// newDialFunc creates a dialer with the credentials of the environment. It makes no network call.
func newDialFunc(ctx context.Context, instance string) (pgconn.DialFunc, error) {
	dialer, err := cloudsqlconn.NewDialer(ctx,
		cloudsqlconn.WithIAMAuthN(),
		// no refresh timer, which does not run while the instance is frozen
		cloudsqlconn.WithLazyRefresh(),
		// saves a client and a goroutine; nothing reads these metrics
		cloudsqlconn.WithBuiltInMetrics(false),
		cloudsqlconn.WithDefaultDialOptions(cloudsqlconn.WithPrivateIP()), // over the VPC
	)
	if err != nil {
		return nil, fmt.Errorf("postgres: prepare to dial %s: %w", instance, err)
	}
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer.Dial(ctx, instance) }, nil
}
