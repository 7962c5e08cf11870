package detail

import (
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/functest"
)

// answer is what a client got.
type answer struct {
	*functest.Answer
	content
}

// content is the members of either body.
type content struct {
	Locale, Currency string
	Degraded         []struct{ Part, Reason string }
	Property         struct {
		PropertyID, TenantID string
		Name                 struct{ Default string }
		GuestRating          *struct{ Count int }
		Badges               []string
	}
	BrandPeek struct {
		PrimaryColor string
		Neutral      bool
	}
	DefaultStay struct {
		Dates struct{ CheckIn, CheckOut string }
	}
	CheapestRateSnapshot *struct {
		CheapestNightlyMinor string
		CapturedAt           time.Time
		IsStale              bool
	}
	PriceCalendarPreview []struct {
		Date    string
		IsStale bool
	}
	SimilarProperties []struct{ PropertyID, TenantID string }
	PopularitySignals *struct{ BookedLast24h, ViewedLast1h int }
	HandoffHint       struct {
		URL        string
		TTLSeconds int
	}

	PropertyID, From, To string
	Days                 []struct {
		Date                    string
		Available               bool
		CheapestMinor, Currency string
		IsStale                 bool
	}
}

func (a *answer) state() string { return a.Header.Get("X-Cache") }

// lacks is the parts that are named as missing, comma-joined.
func (a *answer) lacks() string {
	var parts []string
	for _, d := range a.Degraded {
		parts = append(parts, d.Part)
	}
	return strings.Join(parts, ",")
}
