package desk

import (
	"context"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

// OutboxStats is what waits to be published, on the wire.
type OutboxStats struct {
	Unsent           int64   `json:"unsent"`
	Refused          int64   `json:"refused"`          // of these, tried without success
	OldestAgeSeconds float64 `json:"oldestAgeSeconds"` // of the unsent; 0 when there are none
	Parked           int64   `json:"parked"`           // given up, until somebody replays them
}

// OutboxStats counts what waits to be published.
func (d *Service) OutboxStats(ctx context.Context) (OutboxStats, error) {
	s, err := outbox.ReadBacklog(ctx, d.outbox.db)
	o := OutboxStats{Unsent: s.Depth, Refused: s.Rejected, Parked: s.Parked}
	if !s.Oldest.IsZero() {
		o.OldestAgeSeconds = max(0, time.Since(s.Oldest).Seconds())
	}
	return o, err
}
