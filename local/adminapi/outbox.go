package adminapi

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

// outboxStats counts the events of the outbox by state.
type outboxStats struct {
	Unsent           int64   `json:"unsent"`
	Refused          int64   `json:"refused"`          // unsent events with at least one failed attempt
	OldestAgeSeconds float64 `json:"oldestAgeSeconds"` // of the oldest unsent event; 0 without unsent events
	// events without further attempts until a person replays them
	Parked int64 `json:"parked"`
}

// readOutboxStats counts the events of the outbox. It returns the error of Postgres or of ctx.
func readOutboxStats(ctx context.Context, db *pgxpool.Pool) (outboxStats, error) {
	s, err := outbox.ReadBacklog(ctx, db)
	o := outboxStats{Unsent: s.Depth, Refused: s.Rejected, Parked: s.Parked}
	if !s.Oldest.IsZero() {
		o.OldestAgeSeconds = max(0, time.Since(s.Oldest).Seconds())
	}
	return o, err
}
