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
	drainChunk  = 100   // rows moved in one transaction
	rejectedCap = 1_000 // rows kept aside
	rejectedTTL = 7 * 24 * time.Hour
)

// BufferRejectedKey names the Redis list of what was in the spill and will never be in the table: for a person to look
// at, newest first, for seven days.
func BufferRejectedKey(keys redisclient.Keys) string { return keys.Key("outbox", "spill", "refused") }

// DrainBuffer moves what waits in Redis into the table, the oldest first, until nothing is left. A row leaves Redis when it
// is committed, so it may be moved twice and is there once; several may move at once. What cannot be a row is kept
// aside. It returns how many it moved, and how many it kept aside.
func DrainBuffer(ctx context.Context, db *pgxpool.Pool, rdb redis.UniversalClient, keys redisclient.Keys) (moved, refused int, err error) {
	spill, aside := BufferKey(keys), BufferRejectedKey(keys)
	for {
		values, err := rdb.LRange(ctx, spill, -drainChunk, -1).Result()
		if err != nil {
			return moved, refused, fmt.Errorf("outbox: read the spill: %w", err)
		}
		if len(values) == 0 {
			return moved, refused, nil
		}
		bad, err := insertBuffered(ctx, db, values)
		if err != nil {
			return moved, refused, fmt.Errorf("outbox: move the spill: %w", err)
		}
		if len(bad) > 0 {
			if err := saveRejected(ctx, rdb, aside, bad); err != nil {
				return moved, refused, err
			}
		}
		removed, err := lua.RemoveBuffered(ctx, rdb, spill, values, 2*drainChunk)
		if err != nil {
			return moved, refused, fmt.Errorf("outbox: shorten the spill: %w", err)
		}
		// What another relay removed first is counted there.
		refused += min(len(bad), int(removed))
		moved += max(0, int(removed)-len(bad))
	}
}

// insertBuffered inserts the rows of values and returns the values that are none.
func insertBuffered(ctx context.Context, db *pgxpool.Pool, values []string) (bad []string, err error) {
	rows := make([]Row, 0, len(values))
	texts := make([]string, 0, len(values))
	for i := len(values) - 1; i >= 0; i-- { // the oldest first
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
	for i, row := range rows { // one of them is to blame
		switch err := insert(ctx, db, []Row{row}); {
		case isRejected(err):
			bad = append(bad, texts[i])
		case err != nil:
			return nil, err
		}
	}
	return bad, nil
}

func saveRejected(ctx context.Context, rdb redis.UniversalClient, aside string, bad []string) error {
	values := make([]any, len(bad))
	for i, value := range bad {
		values[i] = value
	}
	_, err := rdb.TxPipelined(ctx, func(tx redis.Pipeliner) error {
		tx.LPush(ctx, aside, values...)
		tx.LTrim(ctx, aside, 0, rejectedCap-1)
		tx.PExpire(ctx, aside, rejectedTTL)
		return nil
	})
	if err != nil {
		return fmt.Errorf("outbox: keep refused rows aside: %w", err)
	}
	return nil
}
