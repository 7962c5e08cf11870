package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
)

const (
	recordTimeout    = 300 * time.Millisecond // for Postgres
	minRecordTimeout = 50 * time.Millisecond  // for Postgres, however late the request is
	bufferTimeout    = 500 * time.Millisecond // for Redis, the last resort of an event
	minBufferTimeout = 100 * time.Millisecond // for Redis, however late the request is
	bufferCap        = 100_000                // events; about 100 MB of Redis
	breakerThreshold = 5                      // consecutive failures of Postgres that open the breaker
	breakerTimeout   = 4 * time.Second        // an open breaker calls Postgres again after this time, once
)

// Recorder writes events without a mutation. Safe for concurrent use. All methods of a Recorder
// share a circuit breaker for Postgres.
type Recorder struct {
	// Validate, if set, checks every event before the insert. An invalid event fails the call, and
	// all events of the call are lost.
	Validate func(event.Event) error

	db        *pgxpool.Pool
	rdb       redis.UniversalClient
	bufferKey string
	breaker   *gobreaker.CircuitBreaker[int]
}

// NewRecorder returns a recorder that writes to db, and to the buffer in rdb while Postgres is
// unavailable. NewRecorder dials no store and cannot fail. Set Validate before the first use.
func NewRecorder(db *pgxpool.Pool, rdb redis.UniversalClient, keys redisclient.Keys) *Recorder {
	return newRecorder(db, rdb, keys, breakerTimeout)
}

// newRecorder is NewRecorder with another time for an open breaker.
func newRecorder(db *pgxpool.Pool, rdb redis.UniversalClient, keys redisclient.Keys, openDuration time.Duration) *Recorder {
	return &Recorder{
		db: db, rdb: rdb, bufferKey: BufferKey(keys),
		breaker: gobreaker.NewCircuitBreaker[int](gobreaker.Settings{
			Name:        "outbox",
			Timeout:     openDuration,
			ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakerThreshold },
			// Postgres is healthy when it rejects a row, or waits for the lock of another writer.
			IsSuccessful: func(err error) bool { return err == nil || isRejected(err) || postgres.IsContention(err) },
		}),
	}
}

// BufferKey returns the key of the Redis list of rows waiting for Postgres: JSON of Row, newest
// first. The list has no TTL: Redis evicts keys with a TTL first, and these rows are stored nowhere
// else. BufferKey only builds a string.
func BufferKey(keys redisclient.Keys) string { return keys.Key("outbox", "spill") }

// Record writes events to Postgres in a single statement and round trip, within 300 ms, including
// the wait for a free connection. When ctx has a deadline, 100 ms before the deadline stay reserved
// for Redis, but Postgres gets at least 50 ms. Record ignores cancellation by the client, and does
// nothing without events.
//
// If Postgres fails, or its breaker is open, and buffer is true, Record puts the events into the
// Redis buffer: another round trip, within 500 ms, and at least 100 ms however little time ctx
// leaves. The breaker opens for 4 s after five failures in a row; then a single call tries, and
// calls during the try fail at once. The buffer keeps the newest 100,000 events and drops older
// events silently; the relay moves the rest to Postgres. With buffer false the events are lost:
// only Postgres knows whether a guest refused, so pass false while the guest's consent is unknown.
// Rows rejected by Postgres are never buffered.
//
// taken is the number of events in Postgres or in the buffer. Postgres does not count events of a
// guest with refused telemetry or a cleared session, nor event ids already in the table; the buffer
// counts all. A repeated call with the same ids leaves one row for each id.
//
// Record returns 0 and an error when the events are lost: an event is invalid or has no JSON form,
// Postgres rejects a row, or both stores fail. After a timeout the events may be stored all the
// same. Log the error, and answer the guest as usual.
func (r *Recorder) Record(ctx context.Context, buffer bool, events ...event.Event) (taken int, err error) {
	if len(events) == 0 {
		return 0, nil
	}
	if err := r.validate(events); err != nil {
		return 0, err
	}
	rows, err := encodeAll(events)
	if err != nil {
		return 0, err
	}
	taken, err = r.insert(ctx, rows)
	if err != nil && buffer && !isRejected(err) {
		// An insert with a timeout may have been committed: the row is in both stores then, and the
		// insert of the relay skips the id.
		if bufferErr := r.buffer(ctx, rows); bufferErr != nil {
			err = errors.Join(err, bufferErr)
		} else {
			taken, err = len(rows), nil
		}
	}
	if err != nil {
		return 0, fmt.Errorf("outbox: record %d events: %w", len(rows), err)
	}
	return taken, nil
}

// validate returns the first error of Validate.
func (r *Recorder) validate(events []event.Event) error {
	if r.Validate == nil {
		return nil
	}
	for _, e := range events {
		if err := r.Validate(e); err != nil {
			return fmt.Errorf("outbox: record: %w", err)
		}
	}
	return nil
}

// insert writes rows to Postgres, through the breaker and within postgresTimeout.
func (r *Recorder) insert(ctx context.Context, rows []Row) (taken int, err error) {
	limit := postgresTimeout(ctx)
	return r.breaker.Execute(func() (int, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		return insertCount(ctx, r.db, rows)
	})
}

// postgresTimeout returns the time for Postgres: 300 ms, less when ctx ends earlier, so that the
// request is answered in time, and at least 50 ms.
func postgresTimeout(ctx context.Context) time.Duration {
	limit := recordTimeout
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, max(time.Until(deadline)-minBufferTimeout, minRecordTimeout))
	}
	return limit
}

// buffer pushes rows to the Redis list and trims the list to bufferCap, in one transaction: a crash
// between the two commands could let the list grow. The transaction is a single round trip, within
// 500 ms.
func (r *Recorder) buffer(ctx context.Context, rows []Row) error {
	limit := bufferTimeout
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, max(time.Until(deadline)-minBufferTimeout, minBufferTimeout))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	values := make([]any, len(rows))
	for i, row := range rows {
		value, err := json.Marshal(row)
		if err != nil {
			return err
		}
		values[i] = value
	}
	_, err := redisclient.WithLongTimeout(r.rdb).TxPipelined(ctx, func(tx redis.Pipeliner) error {
		tx.LPush(ctx, r.bufferKey, values...)
		tx.LTrim(ctx, r.bufferKey, 0, bufferCap-1)
		return nil
	})
	return err
}

// isRejected reports whether Postgres answered and will never accept these rows: SQLSTATE class 22
// (data exception), 23 (constraint violation) or 54 (program limit exceeded). In the buffer such
// rows would only delay the other rows.
func isRejected(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains([]string{"22", "23", "54"}, pgErr.Code[:min(2, len(pgErr.Code))])
}
