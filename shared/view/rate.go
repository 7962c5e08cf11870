package view

import (
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

// RateSnapshot is the cheapest rate of the requested stay from pricing, in minor units as decimal
// strings. IsStale marks a rate after 60 seconds.
type RateSnapshot struct {
	CheapestNightlyMinor  money.Minor `json:"cheapestNightlyMinor"`
	TotalForStayMinor     money.Minor `json:"totalForStayMinor"`
	Currency              string      `json:"currency"`
	CurrencyDisplayPolicy string      `json:"currencyDisplayPolicy"` // tenant | user-preferred | fallback
	FxSnapshotID          string      `json:"fxSnapshotId,omitzero"`
	CapturedAt            string      `json:"capturedAt"`
	TTLExpiresAt          string      `json:"ttlExpiresAt"`
	IsStale               bool        `json:"isStale"`
}

const maxRateAge = 60 * time.Second // longest freshness of a rate, whatever pricing says

// NewRateSnapshot returns the snapshot of a quote, not stale, and the end of the freshness: the
// expiry from pricing, at most 60 s after capture, and at most 60 s after now whatever the clock of
// pricing. For an old quote the end is before now. NewRateSnapshot never fails; q must not be nil.
// Pure.
func NewRateSnapshot(q *upstream.Quote, now time.Time) (RateSnapshot, time.Time) {
	until := earliest(q.TTLExpiresAt, q.CapturedAt.Add(maxRateAge), now.Add(maxRateAge))
	return RateSnapshot{
		CheapestNightlyMinor: q.CheapestNightlyMinor, TotalForStayMinor: q.TotalForStayMinor,
		Currency: q.Currency, CurrencyDisplayPolicy: q.CurrencyDisplayPolicy, FxSnapshotID: q.FXSnapshotID,
		CapturedAt: timestamp.Format(q.CapturedAt), TTLExpiresAt: timestamp.Format(until),
	}, until
}

func earliest(first time.Time, others ...time.Time) time.Time {
	for _, t := range others {
		if t.Before(first) {
			first = t
		}
	}
	return first
}
