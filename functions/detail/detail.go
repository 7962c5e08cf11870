package detail

import (
	"context"
	"net/http"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/setup"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Detail answers GET /hotels/{propertyId}. Safe for concurrent use.
type Detail struct {
	shelf
	keys   keyspace.Keys
	up     *upstream.Upstreams
	parts  *compose.Parts
	region string // cloud region this service runs in
	link   handoff.Link
}

// NewDetail makes the handler.
func NewDetail(p *setup.Parts, link handoff.Link) *Detail {
	return &Detail{newShelf(p), p.Keys, p.Upstreams, p.Compose, p.Region, link}
}

const (
	detailTTL  = 5 * time.Minute
	partialTTL = 15 * time.Second // of a page that lacks a part: worth showing, not worth keeping
	mendAfter  = 2 * time.Second  // after which a page without rates asks pricing again
)

// hotel is which page is asked for.
type hotel struct {
	property string
	locale   locale.Tag
	currency money.Currency
}

// Serve answers the page of one hotel.
func (d *Detail) Serve(w http.ResponseWriter, r *http.Request) error {
	property, err := propertyIn(r)
	if err != nil {
		return err
	}
	in, err := web.ReadSharedQuery(r)
	if err != nil {
		return err
	}
	h := hotel{property, in.Locale, in.Currency}
	entry, state, suspended, err := d.find(w, r, d.key(h), cache.Recipe{
		TTL:   detailTTL,
		Fill:  func(ctx context.Context) (cache.Filled, error) { return d.fill(ctx, h) },
		Renew: func(ctx context.Context, old *cache.Entry) (cache.Filled, error) { return d.renew(ctx, h, old) },
	})
	if err != nil {
		return err
	}
	if entry, err = d.shown(entry, suspended); err != nil {
		return err
	}
	return d.answer(w, r, in, entry, state)
}

func (d *Detail) key(h hotel) string {
	return d.keys.Key("cache", "detail", h.property, string(h.locale), string(h.currency))
}

// shown is the entry as it may be shown now: without similar hotels of suspended tenants, and with rates marked stale
// whose time is over. An entry that needs neither, which is nearly every one, comes back untouched.
func (d *Detail) shown(e *cache.Entry, suspended *tenants.Suspended) (*cache.Entry, error) {
	overdue, gone := d.overdue(e), false
	for owner := range e.Owners() {
		gone = gone || suspended.Has(owner)
	}
	if !overdue && !gone {
		return e, nil
	}
	page, err := open(e)
	if err != nil {
		return nil, err
	}
	if gone {
		page.Without(suspended.Has)
	}
	if overdue {
		page.MarkStale()
	}
	entry, err := pack(page, page.Owners(), overdue || marked(e, partial), marked(e, priced))
	return &entry, err
}

func open(e *cache.Entry) (*view.HotelDetail, error) {
	body, err := e.Body()
	if err != nil {
		return nil, err
	}
	return view.OpenDetail(body)
}
