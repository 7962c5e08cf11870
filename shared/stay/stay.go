// Package stay owns what a stay is: which nights, and who comes. It never knows about hotels or prices.
package stay

import (
	"fmt"
	"math"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// The limits of a stay, which the specification does not name. Every value is part of a cache key or
// goes to an upstream, and a request without limits is a way to fill either. The limits of the
// occupancy lie beyond what the tenants' booking flows accept; a tenant that sells to groups through
// this search would change them. The hotel decides whether so many people fit into so many rooms.
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

// Nights is how many nights are spent; negative when the dates are reversed.
func (d Dates) Nights() int { return d.CheckOut.DaysSince(d.CheckIn) }

// Validate returns what is wrong with the dates for a guest who asks now: dates.checkIn or dates.checkOut with one of the
// codes "required", "past", "too-far", "reversed", "too-long". Today is the day it is in UTC: the hotels of this
// platform lie east of Greenwich, where that day has begun already (docs/decisions/0002-check-in-dates-in-utc.md).
func (d Dates) Validate(now time.Time) []problem.FieldError {
	var wrong problem.FieldErrors
	today := DateOf(now.UTC())
	switch {
	case d.CheckIn.IsZero():
		wrong.Add("dates.checkIn", "required", "Say the day of arrival.")
	case d.CheckIn.Compare(today) < 0:
		wrong.Add("dates.checkIn", "past", "The day of arrival is past.")
	case d.CheckIn.Compare(today.AddDays(MaxDaysAhead)) > 0:
		wrong.Add("dates.checkIn", "too-far", fmt.Sprintf("The day of arrival must be at most %d days ahead.", MaxDaysAhead))
	}
	switch {
	case d.CheckOut.IsZero():
		wrong.Add("dates.checkOut", "required", "Say the day of departure.")
	case d.CheckIn.IsZero():
	case d.Nights() < 1:
		wrong.Add("dates.checkOut", "reversed", "The day of departure must be after the day of arrival.")
	case d.Nights() > MaxNights:
		wrong.Add("dates.checkOut", "too-long", fmt.Sprintf("A stay has at most %d nights.", MaxNights))
	}
	return wrong
}

// Occupancy is who comes and how many rooms they want.
type Occupancy struct {
	Adults       int   `json:"adults"`
	Children     int   `json:"children"`
	Rooms        int   `json:"rooms"`
	ChildrenAges []int `json:"childrenAges,omitempty"` // one per child when given, years
}

// unsetCount stands for a number that a request leaves out, so that it is told from a zero.
const unsetCount = math.MinInt

// UnsetOccupancy is what to decode a request into: Check calls what the request leaves out required, and not out of range.
func UnsetOccupancy() Occupancy { return Occupancy{Adults: unsetCount, Rooms: unsetCount} }

// Validate returns what is wrong with the occupancy: occupancy.adults, .children, .rooms or .childrenAges (or one of its
// entries), with one of the codes "required", "out-of-range" and "count".
func (o Occupancy) Validate() []problem.FieldError {
	var wrong problem.FieldErrors
	within := func(field string, n, low, high int) bool {
		if low <= n && n <= high {
			return true
		}
		code := "out-of-range"
		if n == unsetCount {
			code = "required"
		}
		wrong.Add("occupancy."+field, code, fmt.Sprintf("Must be from %d to %d.", low, high))
		return false
	}
	within("adults", o.Adults, 1, MaxAdults)
	children := within("children", o.Children, 0, MaxChildren)
	within("rooms", o.Rooms, 1, MaxRooms)
	if o.ChildrenAges != nil && children {
		if len(o.ChildrenAges) != o.Children {
			wrong.Add("occupancy.childrenAges", "count", "Give one age for each child.")
			return wrong
		}
		for i, age := range o.ChildrenAges {
			within(fmt.Sprintf("childrenAges.%d", i), age, 0, MaxChildAge)
		}
	}
	return wrong
}
