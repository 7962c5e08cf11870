package search

import (
	"context"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/flags"
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Finder composes lists and maps from the upstreams and keeps them in the cache. Safe for concurrent use.
type Finder struct {
	keys   keyspace.Keys
	cache  *cache.Cache
	up     *upstream.Upstreams
	parts  *compose.Parts
	flags  *flags.Source
	region string // cloud region this service runs in
	now    func() time.Time
}

// NewFinder makes a Finder.
func NewFinder(keys keyspace.Keys, cache *cache.Cache, up *upstream.Upstreams, parts *compose.Parts, flags *flags.Source, region string, now func() time.Time) *Finder {
	return &Finder{keys, cache, up, parts, flags, region, now}
}

const (
	pageTTL      = 60 * time.Second
	campaignTTL  = 5 * time.Minute  // of a list while a marketing campaign runs
	brandlessTTL = 15 * time.Second // of a page that lacks brands: worth showing, not worth keeping
	ratedCards   = 20               // cards of a page that are quoted, in one batch
	mendAfter    = 2 * time.Second  // after which a list without rates asks pricing again
)

// listTTL is how long a list is fresh.
func (f *Finder) listTTL() time.Duration {
	if f.flags.Current().CampaignMode {
		return campaignTTL
	}
	return pageTTL
}

// listOf is the recipe of one page of a list.
func (f *Finder) listOf(q upstream.SearchQuery, hash string) cache.Recipe {
	return cache.Recipe{
		TTL: f.listTTL(),
		Fill: func(ctx context.Context) (cache.Filled, error) {
			found, err := f.up.Search.Query(ctx, q)
			if err != nil {
				return cache.Filled{}, err
			}
			rated := found.Hits[:min(len(found.Hits), ratedCards)]
			var (
				quotes  map[string]upstream.Quote
				missing []view.Degraded
				quoted  = make(chan struct{})
			)
			go func() { // beside the brands, and waited for below
				defer close(quoted)
				quotes, missing = f.parts.Rates(ctx, quoteRequest(q, refs(rated)))
			}()
			brands, brandless := f.parts.Brands(ctx, tenantsOf(found.Hits))
			<-quoted

			page := &view.Page{Member: listings, ResultCount: found.ResultCount, Place: found.Place}
			page.Degraded = append(missing, brandless...)
			noteDegraded(ctx, page)
			for i := range found.Hits {
				hit := &found.Hits[i]
				item, err := view.NewItem(hit.TenantID, view.Card(hit, brands[hit.TenantID], f.region))
				if err != nil {
					return cache.Filled{}, err
				}
				page.Items = append(page.Items, item)
			}
			if err := f.rate(page, quotes); err != nil {
				return cache.Filled{}, err
			}
			if page.Rest, err = listRest(q, hash, found); err != nil {
				return cache.Filled{}, err
			}
			return f.packList(page, tags(page, q.Geo, found.Coverage))
		},
		Renew: func(ctx context.Context, old *cache.Entry) (cache.Filled, error) { return f.renew(ctx, q, old) },
	}
}

// renew re-fetches the rates of a kept list as one batch, and nothing else.
func (f *Finder) renew(ctx context.Context, q upstream.SearchQuery, old *cache.Entry) (cache.Filled, error) {
	page, err := openPage(old)
	if err != nil {
		return cache.Filled{}, err
	}
	properties := make([]upstream.PropertyRef, 0, ratedCards)
	for _, i := range page.Items[:min(len(page.Items), ratedCards)] {
		properties = append(properties, upstream.PropertyRef{PropertyID: i.Property(), TenantID: i.Tenant})
	}
	quotes, err := f.up.Pricing.Preview(ctx, quoteRequest(q, properties))
	if err != nil {
		// Kept as it is shown, so that the next hits are copies again, and pricing is asked every two seconds and not
		// with each of them.
		web.From(ctx).Note("notRenewed", err.Error())
		page.MarkStale(f.now().Add(mendAfter))
		filled, err := pack(page, nil)
		filled.RatesUntil = f.now().Add(mendAfter)
		return filled, err
	}
	page.Mended("pricing")
	if err := f.rate(page, quotes); err != nil {
		return cache.Filled{}, err
	}
	return f.packList(page, nil) // its tags stand: they were set for as long as the entry is kept
}

// rate puts each quote on its card; a card without one is sold out, or pricing is missing.
func (f *Finder) rate(page *view.Page, quotes map[string]upstream.Quote) error {
	for n := range page.Items {
		item := &page.Items[n]
		item.Rate = nil
		quote, ok := quotes[item.Property()]
		if !ok {
			continue
		}
		if err := item.SetRate(view.Rate(&quote, f.now())); err != nil {
			return err
		}
	}
	return nil
}
