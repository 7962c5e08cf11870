package desk

import (
	"context"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

// Outbox is what waits to be published, on the wire.
type Outbox struct {
	Unsent  int64   `json:"unsent"`
	Refused int64   `json:"refused"`          // of these, tried without success
	Oldest  float64 `json:"oldestAgeSeconds"` // of the unsent; 0 when there are none
	Parked  int64   `json:"parked"`           // given up, until somebody replays them
}

// Outbox counts what waits to be published.
func (d *Desk) Outbox(ctx context.Context) (Outbox, error) {
	s, err := outbox.ReadStanding(ctx, d.backlog.db)
	o := Outbox{Unsent: s.Depth, Refused: s.Refused, Parked: s.Parked}
	if !s.Oldest.IsZero() {
		o.Oldest = max(0, time.Since(s.Oldest).Seconds())
	}
	return o, err
}
