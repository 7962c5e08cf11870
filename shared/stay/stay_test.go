package stay

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

func mustParseDate(t *testing.T, s string) Date {
	t.Helper()
	d, err := ParseDate(s)
	if err != nil {
		t.Fatalf("ParseDate(%q): %v", s, err)
	}
	return d
}

func codes(fields []problem.FieldError) string {
	var list []string
	for _, f := range fields {
		list = append(list, f.Field+" "+f.Code)
		if f.Detail == "" {
			list = append(list, "without detail")
		}
	}
	return strings.Join(list, ", ")
}

func TestParseDate_AcceptsOnlyExistingDays(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"2026-11-05", "2028-02-29", "0001-01-01", "9999-12-31"} {
		if d := mustParseDate(t, good); d.String() != good {
			t.Errorf("got %s, want %s", d, good)
		}
	}
	for _, bad := range []string{
		"", "2026-11-5", "2026-11-31", "2027-02-29", "2026-00-10", "2026-13-01", "2026-01-00", "0000-01-01", "2026/11/05", "2026-11-05 ",
		"2026-11-05T00:00:00Z", "26-11-05", "+026-11-05", "2026--1-05", "2026-1x-05", "２０２６-11-05", "20261105", "-001-01-01", "2026-x9-01",
	} {
		if d, err := ParseDate(bad); err == nil {
			t.Errorf("ParseDate(%q): got %s, want an error", bad, d)
		} else if f := (problem.FieldError{}); !errors.As(err, &f) || f.Code != "date" {
			t.Errorf("ParseDate(%q): got error %v, want code date", bad, err)
		}
	}
}

func TestDate_JSONRoundTrip(t *testing.T) {
	t.Parallel()
	var d Dates
	if err := json.Unmarshal([]byte(`{"checkIn":"2026-11-05","checkOut":"2026-11-07"}`), &d); err != nil {
		t.Fatal(err)
	}
	if d.Nights() != 2 {
		t.Errorf("got %d nights, want 2", d.Nights())
	}
	if text, err := json.Marshal(d); err != nil || string(text) != `{"checkIn":"2026-11-05","checkOut":"2026-11-07"}` {
		t.Errorf("got %s, %v", text, err)
	}
	if err := json.Unmarshal([]byte(`{"checkIn":"2026-11-31"}`), &d); err == nil {
		t.Error("UnmarshalText accepted 31 November")
	}
}

func TestDate_CountsAcrossMonthsAndLeapYears(t *testing.T) {
	t.Parallel()
	if d := mustParseDate(t, "2028-02-28").AddDays(2); d.String() != "2028-03-01" {
		t.Errorf("2028-02-28 plus 2 days: got %s, want 2028-03-01", d)
	}
	if n := mustParseDate(t, "2028-03-01").DaysSince(mustParseDate(t, "2027-03-01")); n != 366 {
		t.Errorf("got %d days, want 366", n)
	}
}

var now = time.Date(2026, 11, 5, 11, 59, 0, 0, time.UTC)

func TestDates_ValidateLimits(t *testing.T) {
	t.Parallel()
	today := DateOf(now)
	for _, c := range []struct {
		name         string
		ahead, stays int
		want         string
	}{
		{"tomorrow", 1, 1, ""},
		{"today", 0, 1, ""},
		{"yesterday", -1, 1, "dates.checkIn past"},
		{"499 days ahead", 499, 1, ""},
		{"500 days ahead", 500, 1, ""},
		{"501 days ahead", 501, 1, "dates.checkIn too-far"},
		{"29 nights", 1, 29, ""},
		{"30 nights", 1, 30, ""},
		{"31 nights", 1, 31, "dates.checkOut too-long"},
		{"no nights", 1, 0, "dates.checkOut reversed"},
		{"reversed", 3, -1, "dates.checkOut reversed"},
		{"past and too long", -9, 31, "dates.checkIn past, dates.checkOut too-long"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Dates{today.AddDays(c.ahead), today.AddDays(c.ahead + c.stays)}
			if got := codes(d.Validate(now)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	if got := codes(Dates{}.Validate(now)); got != "dates.checkIn required, dates.checkOut required" {
		t.Errorf("no dates: got %q", got)
	}
	if got := codes(Dates{CheckOut: today}.Validate(now)); got != "dates.checkIn required" {
		t.Errorf("only check-out: got %q", got)
	}
	if got := codes(Dates{CheckIn: today}.Validate(now)); got != "dates.checkOut required" {
		t.Errorf("only check-in: got %q", got)
	}
	elsewhere := now.In(time.FixedZone("Tarawa", 12.5*3600)) // where it is the next day
	if got := codes(Dates{today.AddDays(-1), today}.Validate(elsewhere)) + codes(Dates{today, today.AddDays(1)}.Validate(elsewhere)); got != "dates.checkIn past" {
		t.Errorf("with a clock in another time zone: got %q, want the result for UTC", got)
	}
}

func TestOccupancy_ValidateLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		o    Occupancy
		want string
	}{
		{"one adult", Occupancy{Adults: 1, Rooms: 1}, ""},
		{"all maximums", Occupancy{16, 10, 8, []int{0, 17, 1, 2, 3, 4, 5, 6, 7, 8}}, ""},
		{"one too many of each", Occupancy{17, 11, 9, nil}, "occupancy.adults out-of-range, occupancy.children out-of-range, occupancy.rooms out-of-range"},
		{"all zero", Occupancy{}, "occupancy.adults out-of-range, occupancy.rooms out-of-range"},
		{"unset", UnsetOccupancy(), "occupancy.adults required, occupancy.rooms required"},
		{"negative", Occupancy{-1, -1, -1, nil}, "occupancy.adults out-of-range, occupancy.children out-of-range, occupancy.rooms out-of-range"},
		{"more rooms than adults", Occupancy{Adults: 2, Rooms: 3}, ""},
		{"children without ages", Occupancy{2, 2, 1, nil}, ""},
		{"an age missing", Occupancy{2, 2, 1, []int{4}}, "occupancy.childrenAges count"},
		{"no age for a child", Occupancy{2, 1, 1, []int{}}, "occupancy.childrenAges count"},
		{"an age without a child", Occupancy{2, 0, 1, []int{4}}, "occupancy.childrenAges count"},
		{"no child, no age", Occupancy{2, 0, 1, []int{}}, ""},
		{"ages out of range", Occupancy{2, 3, 1, []int{18, 17, -1}}, "occupancy.childrenAges.0 out-of-range, occupancy.childrenAges.2 out-of-range"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := codes(c.o.Validate()); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
