package sandbox

import (
	"net/http"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/shared/instant"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
)

type quoteRequest struct {
	Properties []struct {
		PropertyID string `json:"propertyId"`
		TenantID   string `json:"tenantId"`
	} `json:"properties"`
	Dates     stay.Dates     `json:"dates"`
	Occupancy stay.Occupancy `json:"occupancy"`
	Currency  string         `json:"currency"`
	Locale    string         `json:"locale"`
	Calendar  *struct {
		From stay.Date `json:"from"`
		Days int       `json:"days"`
	} `json:"calendar"`
}

type quote struct {
	PropertyID            string     `json:"propertyId"`
	CheapestNightlyMinor  string     `json:"cheapestNightlyMinor"`
	TotalForStayMinor     string     `json:"totalForStayMinor"`
	Currency              string     `json:"currency"`
	CurrencyDisplayPolicy string     `json:"currencyDisplayPolicy"` // tenant, user-preferred, fallback
	FXSnapshotID          string     `json:"fxSnapshotId,omitzero"`
	CapturedAt            string     `json:"capturedAt"`
	TTLExpiresAt          string     `json:"ttlExpiresAt"`
	Calendar              []calendar `json:"calendar,omitzero"`
}

type calendar struct {
	Date          stay.Date `json:"date"`
	CheapestMinor string    `json:"cheapestMinor"`
	Currency      string    `json:"currency"`
}

const (
	maxBatch    = 250
	maxCalendar = 31
	rateTTL     = 60 * time.Second
)

func (s *Sandbox) pricingRoutes() http.Handler {
	mux := newMux()
	route(mux, "POST /v1/pricing/quotes/preview", s.quotes)
	return mux
}

func (s *Sandbox) quotes(r *http.Request) (any, error) {
	var q quoteRequest
	if err := read(r, &q); err != nil {
		return nil, err
	}
	switch {
	case len(q.Properties) == 0 || len(q.Properties) > maxBatch:
		return nil, bad("properties must be 1 to %d", maxBatch)
	case !oneStay(q.Dates):
		return nil, bad("dates must be one to %d nights", stay.MaxNights)
	case len(q.Occupancy.Check()) > 0:
		return nil, bad("occupancy is out of range")
	case q.Currency == "" || q.Locale == "":
		return nil, bad("currency or locale is missing")
	case q.Calendar != nil && (q.Calendar.From.IsZero() || q.Calendar.Days < 1 || q.Calendar.Days > maxCalendar):
		return nil, bad("calendar must be 1 to %d days", maxCalendar)
	}
	captured := s.now().UTC()
	list := []quote{}
	for _, ref := range q.Properties {
		p := s.data.Property(ref.PropertyID)
		// A tenant that does not own the property cannot sell it; sold out has no price.
		if p == nil || p.Tenant.ID != ref.TenantID || !free(p, q.Dates, q.Occupancy.Rooms) {
			continue
		}
		one := q.quote(p)
		one.CapturedAt = instant.Text(captured)
		one.TTLExpiresAt = instant.Text(captured.Add(rateTTL))
		list = append(list, one)
	}
	return struct {
		Quotes []quote `json:"quotes"`
	}{list}, nil
}

func (q *quoteRequest) quote(p *dataset.Property) quote {
	one := quote{PropertyID: p.ID, Currency: q.Currency}
	rate, convertible := rates[q.Currency]
	switch {
	case q.Currency == ownCurrency(p.Country):
		one.CurrencyDisplayPolicy = "tenant"
	case convertible:
		one.CurrencyDisplayPolicy, one.FXSnapshotID = "user-preferred", fxSnapshot
	default:
		one.CurrencyDisplayPolicy, one.Currency, rate = "fallback", "USD", rates["USD"]
	}
	t := newTariff(q.Dates, q.Occupancy, rate)
	one.CheapestNightlyMinor, one.TotalForStayMinor = minor(t.cheapest(p)), minor(t.total(p))
	if q.Calendar == nil {
		return one
	}
	one.Calendar = []calendar{}
	for n := range q.Calendar.Days {
		date := q.Calendar.From.AddDays(n)
		if roomsLeft(p, dayNumber(date)) >= q.Occupancy.Rooms {
			one.Calendar = append(one.Calendar, calendar{date, minor(price(p, dayFactor(date), t.guests, rate)), one.Currency})
		}
	}
	return one
}
