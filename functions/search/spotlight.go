package search

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/admission"
	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
)

const spotlightTTL = 50 * time.Second // with its jitter still inside the 60 s of a rate

// lit is a cached rate; Rate is nil when the property is sold out.
type lit struct {
	Rate  *view.RateSnapshot `json:"rate"`
	Until time.Time          `json:"until"`
}

// spotlight is the rate of one pin. A pin cannot say that its rate is stale, so an old one is not shown
// but named as missing, like one pricing did not give.
func (f *Finder) spotlight(ctx context.Context, guest *admission.Guest, q upstream.SearchQuery, hash string, property upstream.PropertyRef) (*view.RateSnapshot, []view.Degraded) {
	key := f.spotlightKey(hash, property.PropertyID)
	entry, _, err := f.cache.Do(ctx, key, guest.Seen(key), cache.Recipe{
		TTL: spotlightTTL,
		Fill: func(ctx context.Context) (cache.Filled, error) {
			quotes, err := f.up.Pricing.Preview(ctx, quoteRequest(q, []upstream.PropertyRef{property}))
			if err != nil {
				return cache.Filled{}, err
			}
			var l lit
			if quote, ok := quotes[property.PropertyID]; ok {
				rate, until := view.Rate(&quote, f.now())
				l = lit{&rate, until}
			}
			body, err := json.Marshal(l)
			if err != nil {
				return cache.Filled{}, fmt.Errorf("search: encode rate: %w", err)
			}
			entry, err := cache.Pack(http.StatusOK, body, nil, nil)
			return cache.Filled{Entry: entry, Tags: []string{cache.Tenant(property.TenantID), cache.Property(property.PropertyID)}}, err
		},
	})
	var l lit
	if err == nil {
		l, err = decodeLit(entry)
	}
	switch {
	case err != nil:
		return nil, compose.Missing("pricing", err)
	case l.Rate != nil && f.now().After(l.Until):
		return nil, []view.Degraded{{Part: "pricing", Reason: string(upstream.Unavailable)}}
	default:
		return l.Rate, nil
	}
}

func decodeLit(e *cache.Entry) (l lit, err error) {
	body, err := e.Body()
	if err != nil {
		return lit{}, err
	}
	if err := json.Unmarshal(body, &l); err != nil {
		return lit{}, fmt.Errorf("search: cached rate: %w", err)
	}
	return l, nil
}
