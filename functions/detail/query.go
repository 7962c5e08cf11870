package detail

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

const maxAvailabilityDays = 62 // of a request, first and last included

// parseAvailabilityQuery decodes and validates the query string at the time now: the days from
// "from" to "to", both included, for two adults in a single room unless the URL names other
// numbers. A number has a single valid spelling, because each URL is a separate entry at the edge.
// The result has all faults.
func parseAvailabilityQuery(values url.Values, now time.Time) (q upstream.AvailabilityQuery, faults problem.FieldErrors) {
	today := stay.DateOf(now.UTC())
	q.From, faults = parseDate(values, "from", faults)
	q.To, faults = parseDate(values, "to", faults)
	switch {
	case q.From.IsZero():
	case q.From.Compare(today) < 0:
		faults.Add("from", "past", "The first day is past.")
	case q.From.Compare(today.AddDays(stay.MaxDaysAhead)) > 0:
		faults.Add("from", "too-far", fmt.Sprintf("The first day must be at most %d days ahead.", stay.MaxDaysAhead))
	}
	switch {
	case q.From.IsZero() || q.To.IsZero():
	case q.To.Compare(q.From) < 0:
		faults.Add("to", "reversed", "The last day must not be before the first.")
	case q.To.DaysSince(q.From) >= maxAvailabilityDays:
		faults.Add("to", "too-long", fmt.Sprintf("The period must be at most %d days long.", maxAvailabilityDays))
	}
	occupancy := stay.Occupancy{}
	occupancy.Adults, faults = parseNumber(values, "adults", 2, faults)
	occupancy.Children, faults = parseNumber(values, "children", 0, faults)
	occupancy.Rooms, faults = parseNumber(values, "rooms", 1, faults)
	if len(faults) == 0 {
		for _, f := range occupancy.Validate() {
			f.Field = strings.TrimPrefix(f.Field, "occupancy.")
			faults = append(faults, f)
		}
	}
	q.Adults, q.Children, q.Rooms = occupancy.Adults, occupancy.Children, occupancy.Rooms
	return q, faults
}

// parseDate decodes a required date and appends its fault, if any.
func parseDate(values url.Values, name string, faults problem.FieldErrors) (stay.Date, problem.FieldErrors) {
	if !values.Has(name) {
		return stay.Date{}, append(faults, problem.FieldError{Field: name, Code: "required", Detail: "A first and a last day are required, both included."})
	}
	d, err := stay.ParseDate(values.Get(name))
	if field, ok := errors.AsType[problem.FieldError](err); ok {
		field.Field = name
		faults = append(faults, field)
	}
	return d, faults
}

// parseNumber decodes a whole number in the form of strconv.Itoa, or returns the default for an
// absent number.
func parseNumber(values url.Values, name string, defaultValue int, faults problem.FieldErrors) (int, problem.FieldErrors) {
	if !values.Has(name) {
		return defaultValue, faults
	}
	text := values.Get(name)
	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text {
		faults = append(faults, problem.FieldError{Field: name, Code: "malformed", Detail: "Must be a whole number."})
	}
	return n, faults
}
