// Package invalidate is the private door through which the platform tells of changes: of a brand, of a listing, of a
// tenant's standing. It registers its four entry points and builds them.
package invalidate

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // the platform's packer demands it
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
	"github.com/caarlos0/env/v11"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/inbox"
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	_ "melmastoon.ghasi.io/bff-consumer/shared/postgres/connector"
	"melmastoon.ghasi.io/bff-consumer/shared/setup/basis"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// budget is less than the 30 s after which the broker delivers again what was not answered.
const budget = 25 * time.Second

func init() {
	for name, p := range map[string]struct {
		pattern string
		serve   func(*parts) web.Handler
	}{
		"ThemePublished":   {"POST /internal/events/theme-published", (*parts).themePublished},
		"ListingIndexed":   {"POST /internal/events/listing-indexed", (*parts).listingIndexed},
		"TenantSuspended":  {"POST /internal/events/tenant-suspended", (*parts).tenantSuspended},
		"TenantReinstated": {"POST /internal/events/tenant-reinstated", (*parts).tenantReinstated},
	} {
		functions.HTTP(name, web.OpenWithin(name, p.pattern, budget, func(ctx context.Context) (web.Handler, error) {
			parts, err := open(ctx)
			if err != nil {
				return nil, err
			}
			return p.serve(parts), nil
		}))
	}
}

// parts is what the entry points are built from. Safe for concurrent use.
type parts struct {
	db      *pgxpool.Pool
	inbox   *inbox.Inbox
	cache   *cache.Cache
	tenants *tenants.Tenants
	now     func() time.Time
}

func open(ctx context.Context) (*parts, error) {
	e, err := env.ParseAs[basis.Environment]()
	if err != nil {
		return nil, fmt.Errorf("invalidate: %w", err)
	}
	return build(ctx, e)
}

func build(ctx context.Context, e basis.Environment) (*parts, error) {
	db, err := e.Postgres(ctx)
	if err != nil {
		return nil, fmt.Errorf("invalidate: %w", err)
	}
	rdb, keys := e.Redis(), keyspace.Keys{Env: e.Env}
	return &parts{
		db: db, inbox: inbox.New(db),
		cache:   cache.New(rdb, keys, time.Now, "invalidate-"+rand.Text()[:6]),
		tenants: tenants.New(rdb, db, keys, time.Now),
		now:     time.Now,
	}, nil
}
