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
	recordTimeout    = 300 * time.Millisecond
	minRecordTimeout = 50 * time.Millisecond  // of it, however late the request is
	bufferTimeout    = 500 * time.Millisecond // for the last place an event has
	minBufferTimeout = 100 * time.Millisecond // of it, however late the request is
	bufferCap        = 100_000                // events; about 100 MB of Redis
	breakerThreshold = 5                      // failures in a row before Postgres is not asked any more
	breakerTimeout   = 4 * time.Second        // then it is left alone for so long; after it, one call tries
)

// Recorder writes events that no mutation goes with. It is safe for concurrent use.
type Recorder struct {
	Validate func(event.Event) error // if not nil, judges every event before it is written; an event it refuses is lost

	db        *pgxpool.Pool
	rdb       redis.UniversalClient
	bufferKey string
	breaker   *gobreaker.CircuitBreaker[int]
}

// NewRecorder makes a recorder that writes to db, and to a list in rdb while db is away.
func NewRecorder(db *pgxpool.Pool, rdb redis.UniversalClient, keys redisclient.Keys) *Recorder {
	return newRecorder(db, rdb, keys, breakerTimeout)
}

func newRecorder(db *pgxpool.Pool, rdb redis.UniversalClient, keys redisclient.Keys, pause time.Duration) *Recorder {
	return &Recorder{
		db: db, rdb: rdb, bufferKey: BufferKey(keys),
		breaker: gobreaker.NewCircuitBreaker[int](gobreaker.Settings{
			Name:         "outbox",
			Timeout:      pause,
			ReadyToTrip:  func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakerThreshold },
			IsSuccessful: func(err error) bool { return err == nil || isRejected(err) || postgres.IsContention(err) },
		}),
	}
}

// BufferKey names the Redis list of rows that wait for Postgres: JSON of Row, newest first, so the oldest is popped from
// the right. It never expires, because Redis evicts what expires first, and these rows are nowhere else.
func BufferKey(keys redisclient.Keys) string { return keys.Key("outbox", "spill") }

// RecordBuffered writes events in a transaction of their own, in one round trip and within 300 ms, or what ctx has left; when
// Postgres does not take them by then, or has not taken the last few, they wait in Redis, which is given 500 ms more,
// and the oldest beyond 100,000 are dropped. Both are given that time even when the guest has hung up. An error means
// that events are lost; it is for the log, never a reason to refuse the guest. Recording an event twice is recording it
// once.
func (r *Recorder) RecordBuffered(ctx context.Context, events ...event.Event) error {
	_, err := r.Record(ctx, true, events...)
	return err
}

// Record is Record that says how many events were taken: none of a guest who refused them or cleared the session, and
// none that is there already. With mayWait false they do not wait in Redis, because Postgres alone can say whether the
// guest refused; what it does not take now is lost.
func (r *Recorder) Record(ctx context.Context, mayWait bool, events ...event.Event) (taken int, err error) {
	if len(events) == 0 {
		return 0, nil
	}
	for _, e := range events {
		if r.Validate == nil {
			break
		}
		if err := r.Validate(e); err != nil {
			return 0, fmt.Errorf("outbox: record: %w", err)
		}
	}
	rows, err := encodeAll(events)
	if err != nil {
		return 0, err
	}
	within := recordTimeout
	if deadline, ok := ctx.Deadline(); ok { // what is left of the request, so that it is answered in time
		within = min(within, max(time.Until(deadline)-minBufferTimeout, minRecordTimeout))
	}
	taken, err = r.insert(context.WithoutCancel(ctx), rows, within)
	if err != nil && mayWait && !isRejected(err) {
		// An insert that failed late may have been committed; then the row is there twice until the relay's insert,
		// which skips ids it finds.
		if spillErr := r.buffer(ctx, rows); spillErr != nil {
			err = errors.Join(err, spillErr)
		} else {
			taken, err = len(rows), nil
		}
	}
	if err != nil {
		return 0, fmt.Errorf("outbox: record %d events: %w", len(rows), err)
	}
	return taken, nil
}

func (r *Recorder) insert(ctx context.Context, rows []Row, within time.Duration) (taken int, err error) {
	return r.breaker.Execute(func() (int, error) {
		ctx, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		return insertCount(ctx, r.db, rows)
	})
}

// buffer appends and caps in one transaction, so that a crash between the two cannot leave the list to grow.
func (r *Recorder) buffer(ctx context.Context, rows []Row) error {
	within := bufferTimeout
	if deadline, ok := ctx.Deadline(); ok {
		within = min(within, max(time.Until(deadline)-minBufferTimeout, minBufferTimeout))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
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

// isRejected says that Postgres was there and will never take these rows: a data exception, a broken constraint, or a limit
// of its own that one of them is beyond. In Redis they would only stop the others.
func isRejected(err error) bool {
	answer, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains([]string{"22", "23", "54"}, answer.Code[:min(2, len(answer.Code))])
}
