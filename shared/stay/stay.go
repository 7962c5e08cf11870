// Package stay owns the nights and the guests of a stay, with limits and validation. It has no
// notion of hotels or prices and does no I/O.
package stay

import (
	"fmt"
	"math"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// The limits of a stay; the specification has none. Every value is part of a cache key or goes to
// an upstream, and requests without limits could flood both. The limits of the occupancy are above
// those of the tenants' booking flows; a tenant selling to groups through this search would need
// higher limits. The hotel decides whether the guests fit into the rooms.
const (
	MaxNights    = 30
	MaxDaysAhead = 500 // days from today to check-in
	MaxAdults    = 16
	MaxChildren  = 10
	MaxRooms     = 8
	MaxChildAge  = 17
)

// Dates are the day of arrival and the day of departure.
type Dates struct {
	CheckIn  Date `json:"checkIn"`
	CheckOut Date `json:"checkOut"`
}

// Nights returns the number of nights; 0 for equal dates, negative for reversed dates. It needs
// both dates: with an absent date the number has no meaning. It stops at ±106,751 nights. Pure.
func (d Dates) Nights() int { return d.CheckOut.DaysSince(d.CheckIn) }

// Validate returns the errors of the dates for a request at now: field dates.checkIn or
// dates.checkOut, at most one error each, with code "required", "past", "too-far", "reversed" or
// "too-long"; nil for valid dates. An absent check-in leaves a present check-out unchecked. Today
// is the day in UTC: the hotels of this platform lie east of Greenwich, where this day has already
// begun (docs/decisions/0002-check-in-dates-in-utc.md). Pure.
func (d Dates) Validate(now time.Time) []problem.FieldError {
	var faults problem.FieldErrors
	today := DateOf(now.UTC())
	switch {
	case d.CheckIn.IsZero():
		faults.Add("dates.checkIn", "required", "Say the day of arrival.")
	case d.CheckIn.Compare(today) < 0:
		faults.Add("dates.checkIn", "past", "The day of arrival is past.")
	case d.CheckIn.Compare(today.AddDays(MaxDaysAhead)) > 0:
		faults.Add("dates.checkIn", "too-far", fmt.Sprintf("The day of arrival must be at most %d days ahead.", MaxDaysAhead))
	}
	switch {
	case d.CheckOut.IsZero():
		faults.Add("dates.checkOut", "required", "Say the day of departure.")
	case d.CheckIn.IsZero():
	case d.Nights() < 1:
		faults.Add("dates.checkOut", "reversed", "The day of departure must be after the day of arrival.")
	case d.Nights() > MaxNights:
		faults.Add("dates.checkOut", "too-long", fmt.Sprintf("A stay has at most %d nights.", MaxNights))
	}
	return faults
}

// Occupancy is the number of guests and rooms.
type Occupancy struct {
	Adults       int   `json:"adults"`
	Children     int   `json:"children"`
	Rooms        int   `json:"rooms"`
	ChildrenAges []int `json:"childrenAges,omitempty"` // years; nil, or one age per child
}

// unsetCount marks a number missing from a request, as distinct from 0.
const unsetCount = math.MinInt

// UnsetOccupancy returns the Occupancy to decode a request into. Validate then reports missing
// adults or rooms as "required" instead of "out-of-range". Missing children mean 0. Pure.
func UnsetOccupancy() Occupancy { return Occupancy{Adults: unsetCount, Rooms: unsetCount} }

// Validate returns the errors of the occupancy: field occupancy.adults, .children, .rooms,
// .childrenAges or an entry .childrenAges.<n> from 0, with code "required", "out-of-range" or
// "count"; nil for a valid occupancy. nil ages are valid for any number of children. It checks the
// ages only if the number of children is in range, and each age only if there are as many ages as
// children. Pure.
func (o Occupancy) Validate() []problem.FieldError {
	var faults problem.FieldErrors
	within := func(field string, n, low, high int) bool {
		if low <= n && n <= high {
			return true
		}
		code := "out-of-range"
		if n == unsetCount {
			code = "required"
		}
		faults.Add("occupancy."+field, code, fmt.Sprintf("Must be from %d to %d.", low, high))
		return false
	}
	within("adults", o.Adults, 1, MaxAdults)
	children := within("children", o.Children, 0, MaxChildren)
	within("rooms", o.Rooms, 1, MaxRooms)
	if o.ChildrenAges != nil && children {
		if len(o.ChildrenAges) != o.Children {
			faults.Add("occupancy.childrenAges", "count", "Give one age for each child.")
			return faults
		}
		for i, age := range o.ChildrenAges {
			within(fmt.Sprintf("childrenAges.%d", i), age, 0, MaxChildAge)
		}
	}
	return faults
}
