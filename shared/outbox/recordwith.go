package outbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

// RecordWith sends a batch with inserts into another table and with events queued by Queue: a
// single transaction and round trip (two when a connection first prepares the statements), with the
// time limits and the breaker of Record: 300 ms of Postgres, 500 ms of Redis, each less near the
// deadline of ctx. RecordWith ignores cancellation by the client. The argument events repeats the
// events on the batch.
//
// If Postgres fails or the breaker is open, the rows of the other table are lost; after a timeout
// the batch may be committed all the same. The events go to the Redis buffer when buffer is true
// and Postgres did not reject the batch; otherwise the events are lost too. RecordWith returns the
// error in both cases, joined with the error of Redis: log the error, and answer the guest as
// usual. For an invalid event RecordWith sends nothing and returns the error of Validate.
func (r *Recorder) RecordWith(ctx context.Context, buffer bool, batch *pgx.Batch, events ...event.Event) error {
	if err := r.validate(events); err != nil {
		return err
	}
	limit := postgresTimeout(ctx)
	_, err := r.breaker.Execute(func() (int, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		return 0, r.db.SendBatch(ctx, batch).Close()
	})
	if err == nil {
		return nil
	}
	if buffer && len(events) > 0 && !isRejected(err) {
		rows, bufferErr := encodeAll(events)
		if bufferErr == nil {
			bufferErr = r.buffer(ctx, rows)
		}
		err = errors.Join(err, bufferErr)
	}
	return fmt.Errorf("outbox: record a batch with %d events: %w", len(events), err)
}
