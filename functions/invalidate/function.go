// Package invalidate applies events of the platform: published themes, indexed listings, suspended
// and reinstated tenants. Each subject has an entry point. The package owns the table
// tenant_standing and maps events to cache tags; it never loads data into the cache.
package invalidate

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	// the platform's packer demands it
	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
	"github.com/caarlos0/env/v11"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/config"
	"melmastoon.ghasi.io/bff-consumer/shared/inbox"
	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	_ "melmastoon.ghasi.io/bff-consumer/shared/postgres/connector"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// requestTimeout is less than the ack deadline of 30 s, after which Pub/Sub delivers the message
// again.
const requestTimeout = 25 * time.Second

func init() {
	for name, p := range map[string]struct {
		pattern string
		serve   func(*handlers) web.Handler
	}{
		"ThemePublished":   {"POST /internal/events/theme-published", (*handlers).themePublished},
		"ListingIndexed":   {"POST /internal/events/listing-indexed", (*handlers).listingIndexed},
		"TenantSuspended":  {"POST /internal/events/tenant-suspended", (*handlers).tenantSuspended},
		"TenantReinstated": {"POST /internal/events/tenant-reinstated", (*handlers).tenantReinstated},
	} {
		functions.HTTP(name, web.RegisterInternal(name, p.pattern, requestTimeout, func(ctx context.Context, _ *lifecycle.WarmUp) (web.Handler, error) {
			parts, err := open(ctx)
			if err != nil {
				return nil, err
			}
			return p.serve(parts), nil
		}))
	}
}

// handlers holds the dependencies of the entry points. Safe for concurrent use.
type handlers struct {
	db      *pgxpool.Pool
	inbox   *inbox.Inbox
	cache   *cache.Cache
	tenants *tenants.SuspensionCache
	now     func() time.Time
}

func open(ctx context.Context) (*handlers, error) {
	e, err := env.ParseAs[config.Environment]()
	if err != nil {
		return nil, fmt.Errorf("invalidate: %w", err)
	}
	return build(ctx, e)
}

func build(ctx context.Context, e config.Environment) (*handlers, error) {
	db, err := postgres.Open(ctx, e.Postgres)
	if err != nil {
		return nil, fmt.Errorf("invalidate: %w", err)
	}
	rdb, keys := e.Redis(), redisclient.Keys{Env: e.Env}
	return &handlers{
		db: db, inbox: inbox.New(db),
		cache:   cache.New(rdb, keys, time.Now, "invalidate-"+rand.Text()[:6]),
		tenants: tenants.New(rdb, db, keys, time.Now),
		now:     time.Now,
	}, nil
}
