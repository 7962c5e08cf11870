package detail

import (
	"context"
	"net/http"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Detail handles GET /hotels/{propertyId}. Safe for concurrent use.
type Detail struct {
	cachedHandler
	keys      redisclient.Keys
	upstreams *upstream.Upstreams
	parts     *compose.Fetcher
	region    string // cloud region this service runs in
	link      handoff.Link
}

const (
	detailTTL = 5 * time.Minute
	// of a page without an optional part: good enough to show, not to keep
	partialTTL        = 15 * time.Second
	pricingRetryDelay = 2 * time.Second // until a page without rates calls pricing again
)

// pageRequest identifies a page and the cache entry of the page.
type pageRequest struct {
	propertyID string
	locale     locale.Tag
	currency   money.Currency
}

// Serve answers GET /hotels/{propertyId} with the page of a hotel. The answer is shared (public):
// no cookie is read or set. web.Budget bounds the request to 2.5 s. Invalid parameters are 422.
//
// A warm hit costs a Redis round trip of at most 100 ms, which writes rate-limit counters only, and
// no call to Postgres or an upstream. An entry is fresh for 5 minutes (± 10 %), or 15 s without
// search-aggregation or theme-config; rates are fresh for 60 s at most, and a single caller quotes
// new rates while others get the old rates. A load calls the upstreams and takes three or more
// Redis round trips. A single flight among all processes loads; callers without a stored entry wait
// for the load until their deadline.
//
// Failures:
//   - Redis: each process loads by itself and stores nothing.
//   - Postgres: the answer is the same.
//   - property-service: the stored page up to 10 minutes past its freshness, else 503, or 504 when
//     time ran out. An unknown property is 404 for 30 s.
//   - search-aggregation, pricing, theme-config: a page without that part. The part is named in
//     "degraded", the edge may store the answer for 15 s only, and expired rates are marked
//     isStale.
//
// The page of a suspended tenant is 404. An instance without any copy of the suspended tenants
// hides no page.
func (d *Detail) Serve(w http.ResponseWriter, r *http.Request) error {
	property, err := propertyFromPath(r)
	if err != nil {
		return err
	}
	in, err := web.ReadSharedQuery(r)
	if err != nil {
		return err
	}
	q := pageRequest{property, in.Locale, in.Currency}
	entry, state, suspended, err := d.lookup(w, r, d.cacheKey(q), cache.Loader{
		TTL:          detailTTL,
		Load:         func(ctx context.Context) (cache.Loaded, error) { return d.load(ctx, q) },
		RefreshRates: func(ctx context.Context, old *cache.Entry) (cache.Loaded, error) { return d.refreshRates(ctx, q, old) },
	})
	if err != nil {
		return err
	}
	if entry, err = d.prepareForResponse(entry, suspended); err != nil {
		return err
	}
	return d.respond(w, r, in, entry, state)
}

func (d *Detail) cacheKey(q pageRequest) string {
	return d.keys.Key("cache", "detail", q.propertyID, string(q.locale), string(q.currency))
}

// prepareForResponse removes similar hotels of suspended tenants and marks expired rates as stale.
// Nearly every entry needs neither and is returned unchanged, without decompression. The only
// errors come from decoding and encoding.
func (d *Detail) prepareForResponse(e *cache.Entry, suspended *tenants.SuspendedSet) (*cache.Entry, error) {
	expired, hasSuspended := d.ratesExpired(e), false
	for tenant := range e.TenantIDs() {
		hasSuspended = hasSuspended || suspended.Has(tenant)
	}
	if !expired && !hasSuspended {
		return e, nil
	}
	page, err := decodePage(e)
	if err != nil {
		return nil, err
	}
	if hasSuspended {
		page.RemoveTenants(suspended.Has)
	}
	if expired {
		page.MarkStale()
	}
	entry, err := pack(page, page.TenantIDs(), expired || hasMark(e, markPartial), hasMark(e, markPriced))
	return &entry, err
}

// decodePage decompresses and decodes a cached page for changes.
func decodePage(e *cache.Entry) (*view.HotelDetail, error) {
	body, err := e.Body()
	if err != nil {
		return nil, err
	}
	return view.DecodeHotelDetail(body)
}
