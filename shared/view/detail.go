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

// HotelDetail is the page of one hotel. It reads back what it wrote, so a kept one can be opened to renew its rates.
type HotelDetail struct {
	Property             PropertySummary    `json:"property"`
	Rooms                []upstream.Room    `json:"rooms"`
	Amenities            []upstream.Amenity `json:"amenities"`
	Photos               []upstream.Photo   `json:"photos"`
	Policies             upstream.Policies  `json:"policies"`
	BrandPeek            BrandPeek          `json:"brandPeek"`
	DefaultStay          Stay               `json:"defaultStay"` // what the rate is for
	CheapestRateSnapshot *RateSnapshot      `json:"cheapestRateSnapshot,omitzero"`
	PriceCalendarPreview []CalendarDay      `json:"priceCalendarPreview,omitempty"`
	SimilarProperties    []ListingCard      `json:"similarProperties,omitempty"` // at most 4, without rates
	PopularitySignals    *Popularity        `json:"popularitySignals,omitzero"`
	HandoffHint          HandoffHint        `json:"handoffHint"`
	Locale               locale.Tag         `json:"locale"`
	Currency             money.Currency     `json:"currency"`
	Degraded             []Degraded         `json:"degraded"`
}

// PropertySummary is what a page says of the hotel as a whole.
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
	GuestRating *upstream.Rating   `json:"guestRating,omitzero"` // the summary of its reviews, when there are any
	Badges      []string           `json:"badges"`               // as on a ListingCard
}

// Stay is a stay to quote.
type Stay struct {
	Dates     stay.Dates     `json:"dates"`
	Occupancy stay.Occupancy `json:"occupancy"`
}

// CalendarDay is the cheapest rate of one night. IsStale is there when the time of the rates is over.
type CalendarDay struct {
	Date          stay.Date   `json:"date"`
	CheapestMinor money.Minor `json:"cheapestMinor"`
	Currency      string      `json:"currency"`
	IsStale       bool        `json:"isStale,omitzero"`
}

// Popularity is how many people booked or looked. Too few are nobody's business.
type Popularity struct {
	BookedLast24h int `json:"bookedLast24h,omitzero"`
	ViewedLast1h  int `json:"viewedLast1h,omitzero"`
}

// HandoffHint is where the hotel is booked, without a token: that belongs to one guest and this page to all.
type HandoffHint struct {
	URL        string `json:"url"`
	TTLSeconds int    `json:"ttlSeconds"` // of a token, once there is one
}

const (
	minShownCount   = 5 // people that are shown as a number
	defaultStayDays = 1 // days from today (UTC) to the night that a page quotes
)

// NewHotelDetail makes the page of a property without its rates. hotel is nil when search-aggregation has no answer, brands
// lacks a tenant that theme-config has none for; region is the cloud region this service runs in.
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

// heroImage is the picture that stands for the property: its hero, else any, else none.
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

// DefaultStay is what a page quotes to a guest who has not said when: two adults in one room, tomorrow night. Tonight
// is over somewhere already, and half sold.
func DefaultStay(now time.Time) Stay {
	in := stay.DateOf(now.UTC()).AddDays(defaultStayDays)
	return Stay{stay.Dates{CheckIn: in, CheckOut: in.AddDays(1)}, stay.Occupancy{Adults: 2, Rooms: 1}}
}

// SetRate puts the quote of a stay on the page and says until when it is fresh. A nil quote means that the stay is sold
// out.
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

// MarkStale says of every rate that its time is over.
func (d *HotelDetail) MarkStale() {
	if d.CheapestRateSnapshot != nil {
		d.CheapestRateSnapshot.IsStale = true
	}
	for i := range d.PriceCalendarPreview {
		d.PriceCalendarPreview[i].IsStale = true
	}
}

// RemoveTenants drops the similar properties of tenants for which gone says so.
func (d *HotelDetail) RemoveTenants(gone func(tenant string) bool) {
	d.SimilarProperties = slices.DeleteFunc(d.SimilarProperties, func(c ListingCard) bool { return gone(c.TenantID) })
}

// IsDegraded says whether a part is missing.
func (d *HotelDetail) IsDegraded(part string) bool { return isDegraded(d.Degraded, part) }

// ClearDegraded takes a part off the list of what is missing.
func (d *HotelDetail) ClearDegraded(part string) { d.Degraded = clearDegraded(d.Degraded, part) }

// TenantIDs are the tenants on the page, each once, its own first.
func (d *HotelDetail) TenantIDs() []string {
	owners := []string{d.Property.TenantID}
	for _, c := range d.SimilarProperties {
		if !slices.Contains(owners, c.TenantID) {
			owners = append(owners, c.TenantID)
		}
	}
	return owners
}

// Encode writes the page.
func (d *HotelDetail) Encode() ([]byte, error) { return appendJSON(nil, d) }

// DecodeHotelDetail is the inverse of Encode.
func DecodeHotelDetail(body []byte) (*HotelDetail, error) {
	d := new(HotelDetail)
	if err := json.Unmarshal(body, d); err != nil {
		return nil, fmt.Errorf("view: open detail: %w", err)
	}
	return d, nil
}
