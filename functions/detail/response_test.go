package detail

import (
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

// response is the answer to a client.
type response struct {
	*functest.Result
	responseBody
}

// responseBody holds the members of the bodies of both routes.
type responseBody struct {
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

func (a *response) cacheState() string { return a.Header.Get("X-Cache") }

// degradedParts returns the parts in "degraded", joined by commas.
func (a *response) degradedParts() string {
	var parts []string
	for _, d := range a.Degraded {
		parts = append(parts, d.Part)
	}
	return strings.Join(parts, ",")
}
