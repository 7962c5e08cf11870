package view

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/geo"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

// HotelDetail is the page of a hotel. Encode and DecodeHotelDetail are inverse, so a cached page
// can be decoded to refresh the rates. Not safe for concurrent use.
type HotelDetail struct {
	Property             PropertySummary    `json:"property"`
	Rooms                []upstream.Room    `json:"rooms"`
	Amenities            []upstream.Amenity `json:"amenities"`
	Photos               []upstream.Photo   `json:"photos"`
	Policies             upstream.Policies  `json:"policies"`
	BrandPeek            BrandPeek          `json:"brandPeek"`
	DefaultStay          Stay               `json:"defaultStay"` // stay of the rate
	CheapestRateSnapshot *RateSnapshot      `json:"cheapestRateSnapshot,omitzero"`
	PriceCalendarPreview []CalendarDay      `json:"priceCalendarPreview,omitempty"`
	SimilarProperties    []ListingCard      `json:"similarProperties,omitempty"` // at most 4, without rates
	PopularitySignals    *Popularity        `json:"popularitySignals,omitzero"`
	HandoffHint          HandoffHint        `json:"handoffHint"`
	Locale               locale.Tag         `json:"locale"`
	Currency             money.Currency     `json:"currency"`
	Degraded             []Degraded         `json:"degraded"`
}

// PropertySummary is the part of the page about the hotel as a whole.
type PropertySummary struct {
	PropertyID  string             `json:"propertyId"`
	TenantID    string             `json:"tenantId"`
	TenantSlug  string             `json:"tenantSlug"`
	Name        upstream.Localized `json:"name"`
	City        string             `json:"city"`
	Country     string             `json:"country"`
	Geo         geo.Point          `json:"geo"`
	Address     string             `json:"address,omitzero"`
	StarRating  float64            `json:"starRating,omitzero"`
	Description string             `json:"description,omitzero"`
	GuestRating *upstream.Rating   `json:"guestRating,omitzero"` // summary of the reviews, if any
	Badges      []string           `json:"badges"`               // as on a ListingCard
}

// Stay is a stay for a quote.
type Stay struct {
	Dates     stay.Dates     `json:"dates"`
	Occupancy stay.Occupancy `json:"occupancy"`
}

// CalendarDay is the cheapest rate of a night. IsStale is set when the rates have expired.
type CalendarDay struct {
	Date          stay.Date   `json:"date"`
	CheapestMinor money.Minor `json:"cheapestMinor"`
	Currency      string      `json:"currency"`
	IsStale       bool        `json:"isStale,omitzero"`
}

// Popularity is how many people booked or viewed the hotel. Counts under 5 are not shown, for
// privacy.
type Popularity struct {
	BookedLast24h int `json:"bookedLast24h,omitzero"`
	ViewedLast1h  int `json:"viewedLast1h,omitzero"`
}

// HandoffHint is the booking URL of the hotel without a token, because a token belongs to a single
// guest and the page is shared.
type HandoffHint struct {
	URL        string `json:"url"`
	TTLSeconds int    `json:"ttlSeconds"` // lifetime of a token
}

const (
	minShownCount   = 5 // smallest count of people to show
	defaultStayDays = 1 // days from today (UTC) to check-in of the default stay
)

// NewHotelDetail returns the page of a property without rates. A nil hotel omits the parts from
// search-aggregation; a tenant missing from brands, which may be nil, gets the neutral placeholder.
// region is the cloud region of this service. The page shares lists and maps with the arguments.
// NewHotelDetail never fails; d must not be nil. Pure.
func NewHotelDetail(d *upstream.PropertyDetail, hotel *upstream.Hotel, brands map[string]*upstream.Brand, region string, hint HandoffHint) *HotelDetail {
	page := &HotelDetail{
		Property: PropertySummary{
			PropertyID: d.PropertyID, TenantID: d.TenantID, TenantSlug: d.TenantSlug, Name: d.Name, City: d.City,
			Country: d.Country, Geo: d.Geo, Address: d.Address, StarRating: d.StarRating, Description: d.Description,
		},
		Rooms: d.Rooms, Amenities: d.Amenities, Photos: d.Photos, Policies: d.Policies,
		BrandPeek:   newBrandPeek(d.Name, heroImage(d, hotel), brands[d.TenantID]),
		HandoffHint: hint,
	}
	if hotel == nil {
		return page
	}
	page.Property.Badges = badges(&hotel.Hit, region)
	if hotel.ReviewSummary.Count > 0 {
		page.Property.GuestRating = &hotel.ReviewSummary
	}
	page.PopularitySignals = popularity(hotel.Popularity)
	for i := range hotel.Similar {
		hit := &hotel.Similar[i]
		page.SimilarProperties = append(page.SimilarProperties, NewCard(hit, brands[hit.TenantID], region))
	}
	return page
}

// heroImage returns the URL of the property's hero photo, or of the first photo, or of the
// thumbnail, or "".
func heroImage(d *upstream.PropertyDetail, hotel *upstream.Hotel) string {
	if i := slices.IndexFunc(d.Photos, func(p upstream.Photo) bool { return p.IsHero }); i >= 0 {
		return d.Photos[i].URL
	}
	switch {
	case len(d.Photos) > 0:
		return d.Photos[0].URL
	case hotel != nil:
		return hotel.Hit.Thumbnail.URL
	}
	return ""
}

// popularity hides counts under minShownCount; nil without any count.
func popularity(p upstream.Popularity) *Popularity {
	var shown Popularity
	if p.BookedLast24h >= minShownCount {
		shown.BookedLast24h = p.BookedLast24h
	}
	if p.ViewedLast1h >= minShownCount {
		shown.ViewedLast1h = p.ViewedLast1h
	}
	if shown == (Popularity{}) {
		return nil
	}
	return &shown
}

// DefaultStay returns the stay to quote without dates from the guest: two adults, one room, one
// night from the day after now in UTC. The current night is over in some time zones and partly
// sold. Pure.
func DefaultStay(now time.Time) Stay {
	in := stay.DateOf(now.UTC()).AddDays(defaultStayDays)
	return Stay{stay.Dates{CheckIn: in, CheckOut: in.AddDays(1)}, stay.Occupancy{Adults: 2, Rooms: 1}}
}

// SetRate sets the stay, replaces rate and calendar by those of the quote, and returns until when
// the rate is fresh, as NewRateSnapshot does. A nil quote means a sold-out stay: the page then has
// no rate, for 60 s from now. SetRate never fails.
func (d *HotelDetail) SetRate(s Stay, q *upstream.Quote, now time.Time) (until time.Time) {
	d.DefaultStay, d.CheapestRateSnapshot, d.PriceCalendarPreview = s, nil, nil
	if q == nil {
		return now.Add(maxRateAge)
	}
	rate, until := NewRateSnapshot(q, now)
	d.CheapestRateSnapshot = &rate
	for _, day := range q.Calendar {
		d.PriceCalendarPreview = append(d.PriceCalendarPreview, CalendarDay{Date: day.Date, CheapestMinor: day.CheapestMinor, Currency: day.Currency})
	}
	return until
}

// MarkStale marks the rate and every day of the calendar as expired, whatever the time. It does
// nothing on a page without rates.
func (d *HotelDetail) MarkStale() {
	if d.CheapestRateSnapshot != nil {
		d.CheapestRateSnapshot.IsStale = true
	}
	for i := range d.PriceCalendarPreview {
		d.PriceCalendarPreview[i].IsStale = true
	}
}

// RemoveTenants removes the similar properties of the tenants selected by remove, in place. It
// calls remove once per similar property, not for the tenant of the page.
func (d *HotelDetail) RemoveTenants(remove func(tenantID string) bool) {
	d.SimilarProperties = slices.DeleteFunc(d.SimilarProperties, func(c ListingCard) bool { return remove(c.TenantID) })
}

// IsDegraded reports whether the part is in Degraded, the list of missing parts.
func (d *HotelDetail) IsDegraded(part string) bool { return isDegraded(d.Degraded, part) }

// ClearDegraded removes the part from Degraded, the list of missing parts, in place; a part that is
// not in the list has no effect.
func (d *HotelDetail) ClearDegraded(part string) { d.Degraded = clearDegraded(d.Degraded, part) }

// TenantIDs returns the tenants on the page without duplicates, the tenant of the hotel first.
func (d *HotelDetail) TenantIDs() []string {
	tenantIDs := []string{d.Property.TenantID}
	for _, c := range d.SimilarProperties {
		if !slices.Contains(tenantIDs, c.TenantID) {
			tenantIDs = append(tenantIDs, c.TenantID)
		}
	}
	return tenantIDs
}

// Encode returns the JSON. It does no I/O; the error is that of the JSON encoder.
func (d *HotelDetail) Encode() ([]byte, error) { return appendJSON(nil, d) }

// DecodeHotelDetail is the inverse of Encode and keeps no reference to body. It returns nil and an
// error for malformed JSON or a value of another type; it checks nothing else.
func DecodeHotelDetail(body []byte) (*HotelDetail, error) {
	d := new(HotelDetail)
	if err := json.Unmarshal(body, d); err != nil {
		return nil, fmt.Errorf("view: decode detail: %w", err)
	}
	return d, nil
}
