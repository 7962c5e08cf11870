package instant

import (
	"testing"
	"time"
)

func TestATimeIsWrittenInUTCWithMilliseconds(t *testing.T) {
	kabul := time.FixedZone("", 16_200)
	for want, at := range map[string]time.Time{
		"2026-04-23T10:14:22.000Z": time.Date(2026, 4, 23, 14, 44, 22, 0, kabul),
		"2026-04-23T10:14:22.100Z": time.Date(2026, 4, 23, 10, 14, 22, 100_000_000, time.UTC),
		"2026-12-31T23:59:59.999Z": time.Date(2027, 1, 1, 4, 29, 59, 999_999_999, kabul),
	} {
		if got := Text(at); got != want {
			t.Errorf("%v: %s, not %s", at, got, want)
		}
	}
}

func TestWhatIsWrittenReadsBack(t *testing.T) {
	at := time.Date(2026, 4, 23, 10, 14, 22, 7_000_000, time.UTC)
	if got, err := time.Parse(Layout, Text(at)); err != nil || !got.Equal(at) {
		t.Errorf("%v, %v", got, err)
	}
}
