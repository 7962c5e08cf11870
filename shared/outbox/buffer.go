package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
)

const (
	drainChunk  = 100   // rows moved in one statement
	rejectedCap = 1_000 // rejected rows kept for inspection
	rejectedTTL = 7 * 24 * time.Hour
)

// BufferRejectedKey returns the key of the Redis list of buffered rows rejected by Postgres: the
// newest 1,000, newest first, kept for seven days after the last rejection, for an operator to
// inspect. BufferRejectedKey only builds a string.
func BufferRejectedKey(keys redisclient.Keys) string { return keys.Key("outbox", "spill", "refused") }

// DrainBuffer moves rows from the Redis buffer into the table, the oldest first, until the buffer
// is empty. An empty buffer costs a round trip to Redis; 100 rows cost two to Redis and a statement
// in Postgres. Each round trip to Redis has the timeouts of rdb; ctx limits the whole. A row leaves
// Redis after the commit of the insert, so a crash loses no row. Several relays may drain at the
// same time: the insert skips ids in the table.
//
// A value with an unreadable row, or with a row rejected by Postgres, goes to the list
// BufferRejectedKey, in another round trip to Redis. After a rejection the rows of the chunk are
// inserted singly, up to 100 statements. A crash or a concurrent drain may push such a value to the
// list twice.
//
// moved counts the rows removed from the buffer by this call. The outbox may get fewer rows: the
// insert drops duplicates and events of guests with refused telemetry or a cleared session.
// rejected counts the rows set aside.
//
// Without Redis or Postgres, and after the end of ctx, DrainBuffer stops and returns the counts so
// far and the error; the rest stays in the buffer.
func DrainBuffer(ctx context.Context, db *pgxpool.Pool, rdb redis.UniversalClient, keys redisclient.Keys) (moved, rejected int, err error) {
	list := BufferKey(keys)
	for {
		values, err := rdb.LRange(ctx, list, -drainChunk, -1).Result()
		if err != nil {
			return moved, rejected, fmt.Errorf("outbox: read the buffer: %w", err)
		}
		if len(values) == 0 {
			return moved, rejected, nil
		}
		bad, err := insertBuffered(ctx, db, values)
		if err != nil {
			return moved, rejected, fmt.Errorf("outbox: drain the buffer: %w", err)
		}
		if len(bad) > 0 {
			if err := saveRejected(ctx, rdb, BufferRejectedKey(keys), bad); err != nil {
				return moved, rejected, err
			}
		}
		removed, err := lua.RemoveBuffered(ctx, rdb, list, values, 2*drainChunk)
		if err != nil {
			return moved, rejected, fmt.Errorf("outbox: shorten the buffer: %w", err)
		}
		// Another relay may have removed and counted some of the rows first.
		rejected += min(len(bad), int(removed))
		moved += max(0, int(removed)-len(bad))
	}
}

// insertBuffered inserts the rows of values, the oldest first, and returns the values rejected by
// the table.
func insertBuffered(ctx context.Context, db *pgxpool.Pool, values []string) (bad []string, err error) {
	rows := make([]Row, 0, len(values))
	texts := make([]string, 0, len(values))
	for i := len(values) - 1; i >= 0; i-- { // the list has the newest first
		var row Row
		if json.Unmarshal([]byte(values[i]), &row) != nil {
			bad = append(bad, values[i])
			continue
		}
		rows, texts = append(rows, row), append(texts, values[i])
	}
	err = insert(ctx, db, rows)
	if !isRejected(err) {
		return bad, err
	}
	for i, row := range rows { // find the rejected rows
		switch err := insert(ctx, db, []Row{row}); {
		case isRejected(err):
			bad = append(bad, texts[i])
		case err != nil:
			return nil, err
		}
	}
	return bad, nil
}

// saveRejected pushes values to the list of rejected rows, trims the list and renews its TTL.
func saveRejected(ctx context.Context, rdb redis.UniversalClient, list string, bad []string) error {
	values := make([]any, len(bad))
	for i, value := range bad {
		values[i] = value
	}
	_, err := rdb.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		tx.LPush(ctx, list, values...)
		tx.LTrim(ctx, list, 0, rejectedCap-1)
		tx.PExpire(ctx, list, rejectedTTL)
		return nil
	})
	if err != nil {
		return fmt.Errorf("outbox: set rejected rows aside: %w", err)
	}
	return nil
}
