// Package connector lets a program reach Cloud SQL by Google's connector. Import it for that alone, like a database driver. It brings
// gRPC and a client of the SQL Admin API: decision 39.
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

// newDialFunc looks for the credentials of the environment, and calls nobody.
func newDialFunc(ctx context.Context, instance string) (pgconn.DialFunc, error) {
	dialer, err := cloudsqlconn.NewDialer(ctx,
		cloudsqlconn.WithIAMAuthN(),
		cloudsqlconn.WithLazyRefresh(),                                    // a timer does not run while the instance is frozen
		cloudsqlconn.WithBuiltInMetrics(false),                            // a client and a goroutine for metrics nobody reads
		cloudsqlconn.WithDefaultDialOptions(cloudsqlconn.WithPrivateIP()), // by the network that Redis is on
	)
	if err != nil {
		return nil, fmt.Errorf("postgres: prepare to dial %s: %w", instance, err)
	}
	return func(ctx context.Context, _, _ string) (net.Conn, error) { return dialer.Dial(ctx, instance) }, nil
}
