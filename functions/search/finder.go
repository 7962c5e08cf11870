package search

import (
	"context"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/flags"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Finder composes lists and maps from the upstreams and keeps them in the cache. Safe for concurrent use.
type Finder struct {
	keys      redisclient.Keys
	cache     *cache.Cache
	upstreams *upstream.Upstreams
	parts     *compose.Fetcher
	flags     *flags.Source
	region    string // cloud region this service runs in
	now       func() time.Time
}

// NewFinder makes a Finder.
func NewFinder(keys redisclient.Keys, cache *cache.Cache, up *upstream.Upstreams, parts *compose.Fetcher, flags *flags.Source, region string, now func() time.Time) *Finder {
	return &Finder{keys, cache, up, parts, flags, region, now}
}

const (
	pageTTL           = 60 * time.Second
	campaignTTL       = 5 * time.Minute  // of a list while a marketing campaign runs
	missingBrandsTTL  = 15 * time.Second // of a page that lacks brands: worth showing, not worth keeping
	maxQuotedCards    = 20               // cards of a page that are quoted, in one batch
	pricingRetryDelay = 2 * time.Second  // after which a list without rates asks pricing again
)

// listTTL is how long a list is fresh.
func (f *Finder) listTTL() time.Duration {
	if f.flags.Current().CampaignMode {
		return campaignTTL
	}
	return pageTTL
}

// listLoader is the recipe of one page of a list.
func (f *Finder) listLoader(q upstream.SearchQuery, hash string) cache.Loader {
	return cache.Loader{
		TTL: f.listTTL(),
		Load: func(ctx context.Context) (cache.Loaded, error) {
			found, err := f.upstreams.Search.Query(ctx, q)
			if err != nil {
				return cache.Loaded{}, err
			}
			rated := found.Hits[:min(len(found.Hits), maxQuotedCards)]
			var (
				quotes  map[string]upstream.Quote
				missing []view.Degraded
				quoted  = make(chan struct{})
			)
			go func() { // beside the brands, and waited for below
				defer close(quoted)
				quotes, missing = f.parts.Rates(ctx, quoteRequest(q, propertyRefs(rated)))
			}()
			brands, parts, brandless := f.parts.Brands(ctx, distinctTenants(found.Hits))
			<-quoted

			page := &view.Page{Member: listingsMember, ResultCount: found.ResultCount, Place: found.Place}
			page.Degraded = append(missing, brandless...)
			logDegraded(ctx, page)
			for i := range found.Hits {
				hit := &found.Hits[i]
				item, err := view.NewItem(hit.TenantID, view.NewCard(hit, brands[hit.TenantID], f.region))
				if err != nil {
					return cache.Loaded{}, err
				}
				page.Items = append(page.Items, item)
			}
			if err := f.setRates(page, quotes); err != nil {
				return cache.Loaded{}, err
			}
			if page.Extra, err = listMembers(q, hash, found); err != nil {
				return cache.Loaded{}, err
			}
			filled, err := f.packList(page, cacheTags(page, q.Geo, found.Coverage))
			filled.DependsOn = parts
			return filled, err
		},
		RefreshRates: func(ctx context.Context, old *cache.Entry) (cache.Loaded, error) { return f.refreshRates(ctx, q, old) },
	}
}

// refreshRates re-fetches the rates of a kept list as one batch, and nothing else.
func (f *Finder) refreshRates(ctx context.Context, q upstream.SearchQuery, old *cache.Entry) (cache.Loaded, error) {
	page, err := decodePage(old)
	if err != nil {
		return cache.Loaded{}, err
	}
	properties := make([]upstream.PropertyRef, 0, maxQuotedCards)
	for _, i := range page.Items[:min(len(page.Items), maxQuotedCards)] {
		properties = append(properties, upstream.PropertyRef{PropertyID: i.PropertyID(), TenantID: i.TenantID})
	}
	quotes, err := f.upstreams.Pricing.Preview(ctx, quoteRequest(q, properties))
	if err != nil {
		// Kept as it is shown, so that the next hits are copies again, and pricing is asked every two seconds and not
		// with each of them.
		web.FromContext(ctx).AddLogField("notRenewed", err.Error())
		page.MarkStale(f.now().Add(pricingRetryDelay))
		filled, err := pack(page, nil)
		filled.RatesFreshUntil = f.now().Add(pricingRetryDelay)
		return filled, err
	}
	page.ClearDegraded("pricing")
	if err := f.setRates(page, quotes); err != nil {
		return cache.Loaded{}, err
	}
	return f.packList(page, nil) // its tags stand: they were set for as long as the entry is kept
}

// setRates puts each quote on its card; a card without one is sold out, or pricing is missing.
func (f *Finder) setRates(page *view.Page, quotes map[string]upstream.Quote) error {
	for n := range page.Items {
		item := &page.Items[n]
		item.Rate = nil
		quote, ok := quotes[item.PropertyID()]
		if !ok {
			continue
		}
		if err := item.SetRate(view.NewRateSnapshot(&quote, f.now())); err != nil {
			return err
		}
	}
	return nil
}
