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

const maxAvailabilityDays = 62 // in one question, first and last included

// parseAvailabilityQuery reads and checks what is asked for, by a guest who asks now: the days between the members from and to, for two
// adults in one room unless the URL says otherwise. A number has one way to be written, because each URL is an entry of
// its own at the edge.
func parseAvailabilityQuery(values url.Values, now time.Time) (q upstream.AvailabilityQuery, wrong problem.FieldErrors) {
	today := stay.DateOf(now.UTC())
	q.From, wrong = parseDate(values, "from", wrong)
	q.To, wrong = parseDate(values, "to", wrong)
	switch {
	case q.From.IsZero():
	case q.From.Compare(today) < 0:
		wrong.Add("from", "past", "The first day is past.")
	case q.From.Compare(today.AddDays(stay.MaxDaysAhead)) > 0:
		wrong.Add("from", "too-far", fmt.Sprintf("The first day must be at most %d days ahead.", stay.MaxDaysAhead))
	}
	switch {
	case q.From.IsZero() || q.To.IsZero():
	case q.To.Compare(q.From) < 0:
		wrong.Add("to", "reversed", "The last day must not be before the first.")
	case q.To.DaysSince(q.From) >= maxAvailabilityDays:
		wrong.Add("to", "too-long", fmt.Sprintf("At most %d days can be asked for at once.", maxAvailabilityDays))
	}
	occupancy := stay.Occupancy{}
	occupancy.Adults, wrong = parseNumber(values, "adults", 2, wrong)
	occupancy.Children, wrong = parseNumber(values, "children", 0, wrong)
	occupancy.Rooms, wrong = parseNumber(values, "rooms", 1, wrong)
	if len(wrong) == 0 {
		for _, f := range occupancy.Validate() {
			f.Field = strings.TrimPrefix(f.Field, "occupancy.")
			wrong = append(wrong, f)
		}
	}
	q.Adults, q.Children, q.Rooms = occupancy.Adults, occupancy.Children, occupancy.Rooms
	return q, wrong
}

func parseDate(values url.Values, name string, wrong problem.FieldErrors) (stay.Date, problem.FieldErrors) {
	if !values.Has(name) {
		return stay.Date{}, append(wrong, problem.FieldError{Field: name, Code: "required", Detail: "Say the first and the last day, both included."})
	}
	d, err := stay.ParseDate(values.Get(name))
	if field, ok := errors.AsType[problem.FieldError](err); ok {
		field.Field = name
		wrong = append(wrong, field)
	}
	return d, wrong
}

func parseNumber(values url.Values, name string, unsaid int, wrong problem.FieldErrors) (int, problem.FieldErrors) {
	if !values.Has(name) {
		return unsaid, wrong
	}
	text := values.Get(name)
	n, err := strconv.Atoi(text)
	if err != nil || strconv.Itoa(n) != text {
		wrong = append(wrong, problem.FieldError{Field: name, Code: "malformed", Detail: "Must be a whole number."})
	}
	return n, wrong
}
