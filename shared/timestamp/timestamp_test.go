package timestamp

import (
	"testing"
	"time"
)

func TestFormat_UTCWithMilliseconds(t *testing.T) {
	t.Parallel()
	kabul := time.FixedZone("", 16_200)
	for want, at := range map[string]time.Time{
		"2026-04-23T10:14:22.000Z": time.Date(2026, 4, 23, 14, 44, 22, 0, kabul),
		"2026-04-23T10:14:22.100Z": time.Date(2026, 4, 23, 10, 14, 22, 100_000_000, time.UTC),
		"2026-12-31T23:59:59.999Z": time.Date(2027, 1, 1, 4, 29, 59, 999_999_999, kabul),
	} {
		if got := Format(at); got != want {
			t.Errorf("Format(%v): got %s, want %s", at, got, want)
		}
	}
}

func TestFormat_RoundTrip(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 4, 23, 10, 14, 22, 7_000_000, time.UTC)
	if got, err := time.Parse(Layout, Format(at)); err != nil || !got.Equal(at) {
		t.Errorf("got %v, %v, want %v", got, err, at)
	}
}

func TestParse_AcceptsEveryRFC3339Form(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"2026-04-23T10:14:22Z":           "2026-04-23T10:14:22Z",
		"2026-04-23t10:14:22.000007z":    "2026-04-23T10:14:22.000007Z",
		"2026-04-23t14:44:22.1+04:30":    "2026-04-23T10:14:22.1Z",
		"2026-04-23T10:14:22-00:00":      "2026-04-23T10:14:22Z",
		"2016-12-31T23:59:60Z":           "2016-12-31T23:59:59.999999Z",
		"2016-12-31t15:59:60.75-08:00":   "2016-12-31T23:59:59.999999Z",
		"2017-01-01T04:29:60.9999+04:30": "2016-12-31T23:59:59.999999Z",
	} {
		t.Run(text, func(t *testing.T) {
			got, err := Parse(text)
			if err != nil || got.UTC().Format(time.RFC3339Nano) != want {
				t.Errorf("got %v, %v, want %s", got, err, want)
			}
		})
	}
}

func TestParse_RejectsInvalidTime(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "2026-04-23", "2026-04-23T10:14:22", "2026-04-23 10:14:22Z", "2026-02-30T10:14:22Z",
		"2026-04-23T10:14:61Z", "2026-04-23T10:14:60Z", "2026-04-23T23:59:60+04:30", "2026-04-23T10:60Z",
	} {
		if got, err := Parse(text); err == nil {
			t.Errorf("Parse(%q): got %v, want an error", text, got)
		}
	}
}
