package upstream

import (
	"context"
	"fmt"
	"slices"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
)

// Pricing is the client of pricing-service's read-only preview: 800 ms in all, including a retry.
// Safe for concurrent use.
type Pricing struct{ c *client }

// QuoteRequest is the body of POST /v1/pricing/quotes/preview: a batch of at most 50 properties.
type QuoteRequest struct {
	Properties []PropertyRef  `json:"properties"`
	Dates      stay.Dates     `json:"dates"`
	Occupancy  stay.Occupancy `json:"occupancy"`
	Currency   money.Currency `json:"currency"`
	Locale     locale.Tag     `json:"locale"`
	Calendar   *CalendarSpan  `json:"calendar,omitempty"` // set: each quote has a price calendar too
}

// PropertyRef identifies a property and the tenant of the property.
type PropertyRef struct {
	PropertyID string `json:"propertyId"`
	TenantID   string `json:"tenantId"`
}

// CalendarSpan is a range of Days nights (1..31) from From.
type CalendarSpan struct {
	From stay.Date `json:"from"`
	Days int       `json:"days"`
}

// Quote is the cheapest rate of a property. Amounts are in minor units of Currency; this service
// passes amounts on and never computes with amounts.
type Quote struct {
	PropertyID            string      `json:"propertyId"`
	CheapestNightlyMinor  money.Minor `json:"cheapestNightlyMinor"`
	TotalForStayMinor     money.Minor `json:"totalForStayMinor"`
	Currency              string      `json:"currency"`              // ISO 4217
	CurrencyDisplayPolicy string      `json:"currencyDisplayPolicy"` // tenant, user-preferred, fallback
	FXSnapshotID          string      `json:"fxSnapshotId,omitempty"`
	CapturedAt            time.Time   `json:"capturedAt"`
	TTLExpiresAt          time.Time   `json:"ttlExpiresAt"`
	// sorted, unique, inside the requested span
	Calendar []CalendarDay `json:"calendar,omitempty"`
}

// CalendarDay is the cheapest price of a night.
type CalendarDay struct {
	Date          stay.Date   `json:"date"`
	CheapestMinor money.Minor `json:"cheapestMinor"`
	Currency      string      `json:"currency"`
}

// Preview returns the quotes of a batch by property id. Properties that are sold out or have an
// unusable quote are absent; of two quotes for a property the first counts. An empty batch costs no
// call; Preview does not enforce the limit of 50. A call is a POST, within at most 800 ms including
// a retry.
//
// On an error the map is nil. The error is one of the package's rules: an *Error, or an error that
// wraps context.Canceled; a response with quotes, none of them usable, is an *Error of Reason
// BadResponse. A 404 with JSON gives ErrNotFound; invalid UTF-8 in q gives the error of the JSON
// encoder, without a request.
func (p *Pricing) Preview(ctx context.Context, q QuoteRequest) (map[string]Quote, error) {
	if len(q.Properties) == 0 {
		return map[string]Quote{}, nil
	}
	type reply struct {
		Quotes []Quote `json:"quotes"`
	}
	r, err := fetch(ctx, p.c, call{path: "/v1/pricing/quotes/preview", body: q}, func(r *reply) error {
		if r.Quotes == nil {
			return errInvalidMandatory
		}
		sent := len(r.Quotes)
		r.Quotes = filter(r.Quotes, func(quote *Quote) bool { return quote.valid(q.Calendar) })
		if len(r.Quotes) == 0 && sent > 0 {
			return fmt.Errorf("none of %d quotes is usable", sent)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	quotes := make(map[string]Quote, len(r.Quotes))
	for _, quote := range r.Quotes {
		if _, duplicate := quotes[quote.PropertyID]; !duplicate && q.includes(quote.PropertyID) {
			quotes[quote.PropertyID] = quote
		}
	}
	return quotes, nil
}

func (q *QuoteRequest) includes(propertyID string) bool {
	return slices.ContainsFunc(q.Properties, func(p PropertyRef) bool { return p.PropertyID == propertyID })
}

// valid reports whether the mandatory values of q are usable, and removes unusable optional values.
// span is the requested calendar, or nil.
func (q *Quote) valid(span *CalendarSpan) bool {
	if !id.Valid(id.Property, q.PropertyID) || !validPrice(q.CheapestNightlyMinor, q.Currency) || !validPrice(q.TotalForStayMinor, q.Currency) {
		return false
	}
	switch q.CurrencyDisplayPolicy {
	case "tenant", "user-preferred", "fallback":
	default:
		return false
	}
	// A quote is valid for a minute; a validity over a day means a broken clock or unit.
	if validity := q.TTLExpiresAt.Sub(q.CapturedAt); q.CapturedAt.IsZero() || validity <= 0 || validity > 24*time.Hour {
		return false
	}
	if q.FXSnapshotID != "" && !validCode(q.FXSnapshotID) {
		q.FXSnapshotID = ""
	}
	if span == nil {
		q.Calendar = nil
		return true
	}
	unique, end := newUniqueFilter[stay.Date](len(q.Calendar)), span.From.AddDays(span.Days)
	q.Calendar = filter(q.Calendar, func(d *CalendarDay) bool {
		return validPrice(d.CheapestMinor, d.Currency) && d.Date.Compare(span.From) >= 0 && d.Date.Compare(end) < 0 && unique(d.Date)
	})
	slices.SortFunc(q.Calendar, func(a, b CalendarDay) int { return a.Date.Compare(b.Date) })
	return true
}
