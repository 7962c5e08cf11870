package view

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

// Availability is the availability of a hotel's nights from From to To, inclusive. Not safe for
// concurrent use.
type Availability struct {
	PropertyID string         `json:"propertyId"`
	From       stay.Date      `json:"from"`
	To         stay.Date      `json:"to"`
	Days       []AvailableDay `json:"days"` // sorted; a missing day is unknown, not sold out
	Degraded   []Degraded     `json:"degraded"`
}

// AvailableDay is a night. IsStale is set when the price has expired.
type AvailableDay struct {
	Date          stay.Date   `json:"date"`
	Available     bool        `json:"available"`
	RoomsLeft     *int        `json:"roomsLeft,omitzero"`
	CheapestMinor money.Minor `json:"cheapestMinor,omitzero"` // set if and only if Currency is set
	Currency      string      `json:"currency,omitzero"`
	IsStale       bool        `json:"isStale,omitzero"`
}

// NewAvailability returns the Availability of a response of search-aggregation, with the days in
// the given order. It never fails. Pure.
func NewAvailability(q upstream.AvailabilityQuery, days []upstream.Day) *Availability {
	a := &Availability{PropertyID: q.PropertyID, From: q.From, To: q.To}
	for _, d := range days {
		a.Days = append(a.Days, AvailableDay{
			Date: d.Date, Available: d.Available, RoomsLeft: d.RoomsLeft, CheapestMinor: d.CheapestMinor, Currency: d.Currency,
		})
	}
	return a
}

// HasPrice reports whether any day has a price.
func (a *Availability) HasPrice() bool {
	for i := range a.Days {
		if a.Days[i].CheapestMinor != "" {
			return true
		}
	}
	return false
}

// MarkStale marks every price as expired, whatever the time, and clears the mark of a day without a
// price.
func (a *Availability) MarkStale() {
	for i := range a.Days {
		a.Days[i].IsStale = a.Days[i].CheapestMinor != ""
	}
}

// Encode returns the JSON. It does no I/O; the error is that of the JSON encoder.
func (a *Availability) Encode() ([]byte, error) { return appendJSON(nil, a) }

// DecodeAvailability is the inverse of Encode and keeps no reference to body. It returns nil and an
// error for malformed JSON or a value of another type; it checks nothing else.
func DecodeAvailability(body []byte) (*Availability, error) {
	a := new(Availability)
	if err := json.Unmarshal(body, a); err != nil {
		return nil, fmt.Errorf("view: decode availability: %w", err)
	}
	return a, nil
}
