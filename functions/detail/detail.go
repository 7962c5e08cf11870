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
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
)

// Detail answers GET /hotels/{propertyId}. Safe for concurrent use.
type Detail struct {
	cachedHandler
	keys      redisclient.Keys
	upstreams *upstream.Upstreams
	parts     *compose.Fetcher
	region    string // cloud region this service runs in
	link      handoff.Link
}

// NewDetail makes the handler.
func NewDetail(p *wiring.Deps, link handoff.Link) *Detail {
	return &Detail{newCachedHandler(p), p.Keys, p.Upstreams, p.Compose, p.Region, link}
}

const (
	detailTTL         = 5 * time.Minute
	partialTTL        = 15 * time.Second // of a page that lacks a part: worth showing, not worth keeping
	pricingRetryDelay = 2 * time.Second  // after which a page without rates asks pricing again
)

// pageRequest is which page is asked for.
type pageRequest struct {
	propertyID string
	locale     locale.Tag
	currency   money.Currency
}

// Serve answers the page of one hotel.
func (d *Detail) Serve(w http.ResponseWriter, r *http.Request) error {
	property, err := propertyFromPath(r)
	if err != nil {
		return err
	}
	in, err := web.ReadSharedQuery(r)
	if err != nil {
		return err
	}
	h := pageRequest{property, in.Locale, in.Currency}
	entry, state, suspended, err := d.lookup(w, r, d.cacheKey(h), cache.Loader{
		TTL:          detailTTL,
		Load:         func(ctx context.Context) (cache.Loaded, error) { return d.load(ctx, h) },
		RefreshRates: func(ctx context.Context, old *cache.Entry) (cache.Loaded, error) { return d.refreshRates(ctx, h, old) },
	})
	if err != nil {
		return err
	}
	if entry, err = d.prepareForResponse(entry, suspended); err != nil {
		return err
	}
	return d.respond(w, r, in, entry, state)
}

func (d *Detail) cacheKey(h pageRequest) string {
	return d.keys.Key("cache", "detail", h.propertyID, string(h.locale), string(h.currency))
}

// prepareForResponse is the entry as it may be shown now: without similar hotels of suspended tenants, and with rates marked stale
// whose time is over. An entry that needs neither, which is nearly every one, comes back untouched.
func (d *Detail) prepareForResponse(e *cache.Entry, suspended *tenants.SuspendedSet) (*cache.Entry, error) {
	overdue, gone := d.ratesExpired(e), false
	for owner := range e.TenantIDs() {
		gone = gone || suspended.Has(owner)
	}
	if !overdue && !gone {
		return e, nil
	}
	page, err := decodePage(e)
	if err != nil {
		return nil, err
	}
	if gone {
		page.RemoveTenants(suspended.Has)
	}
	if overdue {
		page.MarkStale()
	}
	entry, err := pack(page, page.TenantIDs(), overdue || hasMark(e, markPartial), hasMark(e, markPriced))
	return &entry, err
}

func decodePage(e *cache.Entry) (*view.HotelDetail, error) {
	body, err := e.Body()
	if err != nil {
		return nil, err
	}
	return view.DecodeHotelDetail(body)
}
