package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

// RecordWith sends a batch in which events are queued beside rows of another table, one transaction and one round trip, within
// the times of Offer. An error means that the rows are lost. The events that went with them wait in Redis then, when
// mayWait says that they may; it is for the log, never a reason to refuse the guest.
func (r *Recorder) RecordWith(ctx context.Context, mayWait bool, batch *pgx.Batch, events ...event.Event) error {
	for _, e := range events {
		if r.Validate == nil {
			break
		}
		if err := r.Validate(e); err != nil {
			return fmt.Errorf("outbox: beside: %w", err)
		}
	}
	within := recordTimeout
	if deadline, ok := ctx.Deadline(); ok {
		within = min(within, max(time.Until(deadline)-minBufferTimeout, minRecordTimeout))
	}
	_, err := r.breaker.Execute(func() (int, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		defer cancel()
		return 0, r.db.SendBatch(ctx, batch).Close()
	})
	if err == nil {
		return nil
	}
	if mayWait && len(events) > 0 && !isRejected(err) {
		rows, encodeErr := encodeAll(events)
		if encodeErr == nil {
			encodeErr = r.buffer(ctx, rows)
		}
		err = errors.Join(err, encodeErr)
	}
	return fmt.Errorf("outbox: beside %d events: %w", len(events), err)
}
