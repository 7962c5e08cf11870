package scheduler

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// cronSchedule is a parsed cron expression: minute, hour, day of the month, month, day of the week.
// A field is *, a number, a range or a comma-separated list of them; *, numbers and ranges may have
// a /step. Names of months and weekdays are not supported.
type cronSchedule struct {
	fields    [5]uint64 // a bit for each matching value
	eitherDay bool      // both day fields are limited, so a match of either is enough, as in cron
}

var fieldLimits = [5]struct {
	name     string
	min, max int
}{{"minute", 0, 59}, {"hour", 0, 23}, {"day of the month", 1, 31}, {"month", 1, 12}, {"day of the week", 0, 7}}

// parseCron parses a cron expression. The error names the expression and the wrong field.
func parseCron(text string) (cronSchedule, error) {
	var c cronSchedule
	fields := strings.Fields(text)
	if len(fields) != len(c.fields) {
		return c, fmt.Errorf("scheduler: schedule %q: %d fields instead of 5", text, len(fields))
	}
	for i, field := range fields {
		for part := range strings.SplitSeq(field, ",") {
			set, err := parseRange(part, fieldLimits[i].min, fieldLimits[i].max)
			if err != nil {
				return c, fmt.Errorf("scheduler: schedule %q: %s: %w", text, fieldLimits[i].name, err)
			}
			c.fields[i] |= set
		}
	}
	c.fields[4] |= c.fields[4] >> 7 & 1 // Sunday is 0 and 7
	c.eitherDay = !strings.HasPrefix(fields[2], "*") && !strings.HasPrefix(fields[4], "*")
	return c, nil
}

// parseRange returns the values of one list entry of a field as a bit set.
func parseRange(part string, least, most int) (set uint64, err error) {
	span, step, stepped := strings.Cut(part, "/")
	by := 1
	if stepped {
		if by, err = strconv.Atoi(step); err != nil || by < 1 {
			return 0, fmt.Errorf("%q is not a step", step)
		}
	}
	first, last := least, most
	if span != "*" {
		from, to, ranged := strings.Cut(span, "-")
		if first, err = strconv.Atoi(from); err != nil {
			return 0, fmt.Errorf("%q is not a number", from)
		}
		switch {
		case ranged:
			if last, err = strconv.Atoi(to); err != nil {
				return 0, fmt.Errorf("%q is not a number", to)
			}
		case !stepped:
			last = first
		}
	}
	if first < least || last > most || first > last {
		return 0, fmt.Errorf("%q is not within %d to %d", part, least, most)
	}
	for v := first; v <= last; v += by {
		set |= 1 << v
	}
	return set, nil
}

// matches reports whether the schedule matches the minute of t, in UTC.
func (c cronSchedule) matches(t time.Time) bool {
	t = t.UTC()
	has := func(field, value int) bool { return c.fields[field]>>value&1 == 1 }
	day, weekday := has(2, t.Day()), has(4, int(t.Weekday()))
	return has(0, t.Minute()) && has(1, t.Hour()) && has(3, int(t.Month())) && (day && weekday || c.eitherDay && (day || weekday))
}
