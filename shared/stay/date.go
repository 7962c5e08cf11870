package stay

import (
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// Date is a calendar day without time or time zone, "2006-01-02" in JSON. The zero Date means
// absent. All functions and methods are pure.
type Date struct {
	Year  int
	Month time.Month
	Day   int
}

var invalidDate = problem.FieldError{Code: "date", Detail: "Must be a day of the calendar, written like 2026-04-30."}

// DateOf returns the day of t in t's location.
func DateOf(t time.Time) Date {
	y, m, d := t.Date()
	return Date{y, m, d}
}

// ParseDate parses exactly the form "2006-01-02" of an existing day from year 1 to 9999. The error
// is a problem.FieldError without a field name, with code "date", also for an empty text.
func ParseDate(s string) (Date, error) { return parseDate(s) }

func parseDate[T string | []byte](s T) (Date, error) {
	if len(s) != len("2006-01-02") || s[4] != '-' || s[7] != '-' {
		return Date{}, invalidDate
	}
	number := func(from, to int) int {
		n := 0
		for _, c := range []byte(s[from:to]) {
			if c < '0' || c > '9' {
				return -1 << 20 // negative whatever digit follows
			}
			n = n*10 + int(c-'0')
		}
		return n
	}
	d := Date{number(0, 4), time.Month(number(5, 7)), number(8, 10)}
	if d.Year < 1 || DateOf(d.utc()) != d { // time.Date would turn 31 June into 1 July
		return Date{}, invalidDate
	}
	return d, nil
}

// AddDays returns the day n days later, or earlier for a negative n. d must not be absent.
func (d Date) AddDays(n int) Date { return DateOf(d.utc().AddDate(0, 0, n)) }

// DaysSince returns the number of days from e to d, negative if d is before e. It stops at ±106,751
// days, 292 years. Neither date may be absent.
func (d Date) DaysSince(e Date) int { return int(d.utc().Sub(e.utc()) / (24 * time.Hour)) }

// Compare returns -1, 0 or 1 for d before, equal to or after e. An absent date is before every date
// of ParseDate.
func (d Date) Compare(e Date) int { return d.utc().Compare(e.utc()) }

// IsZero reports whether the date is absent.
func (d Date) IsZero() bool { return d == Date{} }

// String returns "2006-01-02", or "" for an absent date.
func (d Date) String() string {
	var text [len(time.DateOnly)]byte
	b, _ := d.AppendText(text[:0])
	return string(b)
}

// AppendText appends the text of String. The error is always nil.
func (d Date) AppendText(b []byte) ([]byte, error) {
	if d.IsZero() {
		return b, nil
	}
	return d.utc().AppendFormat(b, time.DateOnly), nil
}

// MarshalText returns the text of String, in JSON "" for an absent date; UnmarshalText rejects this
// text. The error is always nil.
func (d Date) MarshalText() ([]byte, error) { return d.AppendText(nil) }

// UnmarshalText parses like ParseDate, with the same error. After an error d is unchanged.
func (d *Date) UnmarshalText(text []byte) error {
	parsed, err := parseDate(text)
	if err != nil {
		return err
	}
	*d = parsed
	return nil
}

func (d Date) utc() time.Time { return time.Date(d.Year, d.Month, d.Day, 0, 0, 0, 0, time.UTC) }
