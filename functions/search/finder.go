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

// Finder composes lists and maps from upstream answers and caches them. Safe for concurrent use.
type Finder struct {
	keys      redisclient.Keys
	cache     *cache.Cache
	upstreams *upstream.Upstreams
	parts     *compose.Fetcher
	flags     *flags.Source
	region    string // cloud region this service runs in
	now       func() time.Time
}

// NewFinder returns a Finder. region is the cloud region of this service, for the badge of hotels
// that another region serves. NewFinder does no I/O and cannot fail.
func NewFinder(keys redisclient.Keys, cache *cache.Cache, up *upstream.Upstreams, parts *compose.Fetcher, flags *flags.Source, region string, now func() time.Time) *Finder {
	return &Finder{keys, cache, up, parts, flags, region, now}
}

const (
	pageTTL           = 60 * time.Second
	campaignTTL       = 5 * time.Minute  // of a list in campaign mode
	missingBrandsTTL  = 15 * time.Second // of a page without brands: good enough to show, not to keep
	maxQuotedCards    = 20               // first cards of a page that get a rate, quoted in one batch
	pricingRetryDelay = 2 * time.Second  // until a list without rates calls pricing again
)

// listTTL returns the freshness of a list: 60 s, or 5 minutes in campaign mode.
func (f *Finder) listTTL() time.Duration {
	if f.flags.Current().CampaignMode {
		return campaignTTL
	}
	return pageTTL
}

// listLoader loads one page of a list: one call to search-aggregation, then pricing (one batch for
// the first 20 cards, 800 ms) and brands (750 ms) side by side. A failure of pricing or
// theme-config is named in "degraded"; errors come from search-aggregation and of encoding.
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
			go func() { // runs while this goroutine loads the brands, and ends before it continues
				defer close(quoted)
				quotes, missing = f.parts.Rates(ctx, quoteRequest(q, propertyRefs(rated)))
			}()
			brands, parts, missingBrands := f.parts.Brands(ctx, distinctTenants(found.Hits))
			<-quoted

			page := &view.Page{Member: listingsMember, ResultCount: found.ResultCount, Place: found.Place}
			page.Degraded = append(missing, missingBrands...)
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

// refreshRates replaces the rates of a cached list by a batch of new quotes and leaves the rest
// unchanged. When pricing fails, the result is the list with expired rates marked stale and no
// error.
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
		// The marked list is stored, so that the next hits copy bytes again and pricing is called
		// once in 2 s instead of once per hit.
		web.FromContext(ctx).AddLogField("notRenewed", err.Error())
		page.MarkStale(f.now().Add(pricingRetryDelay))
		loaded, err := pack(page, nil)
		loaded.RatesFreshUntil = f.now().Add(pricingRetryDelay)
		return loaded, err
	}
	page.ClearDegraded("pricing")
	if err := f.setRates(page, quotes); err != nil {
		return cache.Loaded{}, err
	}
	return f.packList(page, nil) // the first load registered the tags for as long as the entry is kept
}

// setRates sets the rate of each card that has a quote and removes the other rates. A card without
// a quote is sold out, beyond the first 20 cards, or pricing did not answer.
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
