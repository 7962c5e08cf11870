package sandbox

import (
	"net/http"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
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
	PropertyID            string        `json:"propertyId"`
	CheapestNightlyMinor  string        `json:"cheapestNightlyMinor"`
	TotalForStayMinor     string        `json:"totalForStayMinor"`
	Currency              string        `json:"currency"`
	CurrencyDisplayPolicy string        `json:"currencyDisplayPolicy"` // tenant, user-preferred, fallback
	FXSnapshotID          string        `json:"fxSnapshotId,omitzero"`
	CapturedAt            string        `json:"capturedAt"`
	TTLExpiresAt          string        `json:"ttlExpiresAt"`
	Calendar              []calendarDay `json:"calendar,omitzero"`
}

type calendarDay struct {
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

// quotes responds with a quote for each property of the request that the tenant owns and that has
// rooms.
func (s *Sandbox) quotes(r *http.Request) (any, error) {
	var q quoteRequest
	if err := readJSON(r, &q); err != nil {
		return nil, err
	}
	switch {
	case len(q.Properties) == 0 || len(q.Properties) > maxBatch:
		return nil, badRequest("properties must be 1 to %d", maxBatch)
	case !isValidStay(q.Dates):
		return nil, badRequest("dates must be one to %d nights", stay.MaxNights)
	case len(q.Occupancy.Validate()) > 0:
		return nil, badRequest("occupancy is out of range")
	case q.Currency == "" || q.Locale == "":
		return nil, badRequest("currency or locale is missing")
	case q.Calendar != nil && (q.Calendar.From.IsZero() || q.Calendar.Days < 1 || q.Calendar.Days > maxCalendar):
		return nil, badRequest("calendar must be 1 to %d days", maxCalendar)
	}
	captured := s.now().UTC()
	list := []quote{}
	for _, ref := range q.Properties {
		p := s.data.Property(ref.PropertyID)
		// A tenant sells its own properties only, and a property without rooms has no price.
		if p == nil || p.Tenant.ID != ref.TenantID || !isAvailable(p, q.Dates, q.Occupancy.Rooms) {
			continue
		}
		one := q.quote(p)
		one.CapturedAt = timestamp.Format(captured)
		one.TTLExpiresAt = timestamp.Format(captured.Add(rateTTL))
		list = append(list, one)
	}
	return struct {
		Quotes []quote `json:"quotes"`
	}{list}, nil
}

// quote returns the price of a property in the requested currency, or in US dollars for a currency
// without a rate.
func (q *quoteRequest) quote(p *dataset.Property) quote {
	one := quote{PropertyID: p.ID, Currency: q.Currency}
	rate, convertible := exchangeRates[q.Currency]
	switch {
	case q.Currency == localCurrency(p.Country):
		one.CurrencyDisplayPolicy = "tenant"
	case convertible:
		one.CurrencyDisplayPolicy, one.FXSnapshotID = "user-preferred", fxSnapshot
	default:
		one.CurrencyDisplayPolicy, one.Currency, rate = "fallback", "USD", exchangeRates["USD"]
	}
	t := newTariff(q.Dates, q.Occupancy, rate)
	one.CheapestNightlyMinor, one.TotalForStayMinor = formatMinor(t.cheapest(p)), formatMinor(t.total(p))
	if q.Calendar == nil {
		return one
	}
	one.Calendar = []calendarDay{}
	for n := range q.Calendar.Days {
		date := q.Calendar.From.AddDays(n)
		if roomsLeft(p, dayNumber(date)) >= q.Occupancy.Rooms {
			one.Calendar = append(one.Calendar, calendarDay{date, formatMinor(nightPrice(p, dayFactor(date), t.guests, rate)), one.Currency})
		}
	}
	return one
}
