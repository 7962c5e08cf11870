package view

import (
	"fmt"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

// Availability is what is known of a hotel's nights from From to To, both included.
type Availability struct {
	PropertyID string         `json:"propertyId"`
	From       stay.Date      `json:"from"`
	To         stay.Date      `json:"to"`
	Days       []AvailableDay `json:"days"` // sorted; one that is missing is unknown, not sold out
	Degraded   []Degraded     `json:"degraded"`
}

// AvailableDay is one night. IsStale is there when the time of its price is over.
type AvailableDay struct {
	Date          stay.Date   `json:"date"`
	Available     bool        `json:"available"`
	RoomsLeft     *int        `json:"roomsLeft,omitzero"`
	CheapestMinor money.Minor `json:"cheapestMinor,omitzero"` // with Currency or not at all
	Currency      string      `json:"currency,omitzero"`
	IsStale       bool        `json:"isStale,omitzero"`
}

// NewAvailability makes an Availability of what search-aggregation answered.
func NewAvailability(q upstream.AvailabilityQuery, days []upstream.Day) *Availability {
	a := &Availability{PropertyID: q.PropertyID, From: q.From, To: q.To}
	for _, d := range days {
		a.Days = append(a.Days, AvailableDay{
			Date: d.Date, Available: d.Available, RoomsLeft: d.RoomsLeft, CheapestMinor: d.CheapestMinor, Currency: d.Currency,
		})
	}
	return a
}

// HasPrice says whether any day shows a price.
func (a *Availability) HasPrice() bool {
	for i := range a.Days {
		if a.Days[i].CheapestMinor != "" {
			return true
		}
	}
	return false
}

// MarkStale says of every price that its time is over.
func (a *Availability) MarkStale() {
	for i := range a.Days {
		a.Days[i].IsStale = a.Days[i].CheapestMinor != ""
	}
}

// Encode writes it.
func (a *Availability) Encode() ([]byte, error) { return appendJSON(nil, a) }

// DecodeAvailability is the inverse of Encode.
func DecodeAvailability(body []byte) (*Availability, error) {
	a := new(Availability)
	if err := json.Unmarshal(body, a); err != nil {
		return nil, fmt.Errorf("view: open availability: %w", err)
	}
	return a, nil
}
