package relay

import (
	"context"
	"log/slog"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

const (
	drainInterval = 3 * time.Second  // between two drains of the Redis buffer
	drainTimeout  = 10 * time.Second // limits a drain
)

// drainBuffer moves the rows of the Redis buffer into the table, for at most 10 s. Without Redis or
// Postgres the rows stay in the buffer: the first failure of a run is logged, and the run goes on.
// Only one goroutine of a run calls it.
func (r *run) drainBuffer(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	moved, rejected, err := outbox.DrainBuffer(limited, r.relay.db, r.relay.rdb, r.relay.keys)
	r.counters.drained.Add(int64(moved))
	r.counters.drainRejected.Add(int64(rejected))
	if rejected > 0 {
		slog.WarnContext(ctx, "outbox: rejected buffered rows are set aside", "rows", rejected, "list", outbox.BufferRejectedKey(r.relay.keys))
	}
	if err != nil && ctx.Err() == nil && !r.drainErrLogged {
		r.drainErrLogged = true
		slog.WarnContext(ctx, "outbox: the buffer cannot be drained", "err", err.Error())
	}
}

// drainBufferPeriodically drains the Redis buffer at once and then every 3 s, until ctx ends.
func (r *run) drainBufferPeriodically(ctx context.Context) {
	tick := time.NewTicker(drainInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		r.drainBuffer(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
