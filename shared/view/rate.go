package view

import (
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

// RateSnapshot is the cheapest rate for the stay asked for, in minor units as decimal strings, passed
// through from pricing. IsStale says that its 60 seconds are over.
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

const maxRateAge = 60 * time.Second // a rate is never shown as fresh beyond it, whatever pricing says

// NewRateSnapshot makes the snapshot of one quote, and says until when it is fresh: what pricing says, at most 60 s
// after it was captured, and at most 60 s from now whatever pricing's clock says.
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
