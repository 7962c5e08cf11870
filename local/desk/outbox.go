package desk

import (
	"context"
	"time"
)

// Outbox is what waits to be published.
type Outbox struct {
	Unsent  int     `json:"unsent"`
	Refused int     `json:"refused"`          // of these, tried without success
	Oldest  float64 `json:"oldestAgeSeconds"` // of the unsent; 0 when there are none
	Parked  int     `json:"parked"`           // given up, until somebody replays them
}

// Outbox counts what waits to be published.
func (d *Desk) Outbox(ctx context.Context) (o Outbox, err error) {
	var oldest *time.Time
	err = d.backlog.db.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE parked_at IS NULL),
		       count(*) FILTER (WHERE parked_at IS NULL AND attempts > 0),
		       count(*) FILTER (WHERE parked_at IS NOT NULL),
		       min(created_at) FILTER (WHERE parked_at IS NULL)
		FROM bff_consumer.outbox
		WHERE published_at IS NULL`).Scan(&o.Unsent, &o.Refused, &o.Parked, &oldest)
	if oldest != nil {
		o.Oldest = max(0, time.Since(*oldest).Seconds())
	}
	return o, err
}
