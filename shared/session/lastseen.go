package session

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
)

// Shards are the last characters a session's id may have, Crockford's alphabet: equal parts of all sessions.
const Shards = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

func shard(id string) string { return id[len(id)-1:] }

// enqueueLastSeen writes down when the session was last here, for the sweep that ends those gone quiet, and whether that may
// be told. A session that was cleared meanwhile is noted too: who learns of that takes it back.
func (r *Store) enqueueLastSeen(ctx context.Context, pipe redis.Pipeliner, s *Session) {
	silent := !s.AllowsEvents()
	pipe.ZAddArgs(ctx, r.keys.LastSeen(shard(s.ID), silent), redis.ZAddArgs{
		GT:      true, // of two visits at once the later one counts
		Members: []redis.Z{{Score: float64(s.LastSeenAt.UnixMilli()), Member: s.ID}},
	})
	pipe.ZRem(ctx, r.keys.LastSeen(shard(s.ID), !silent), s.ID)
}

// RemoveLastSeen forgets when a session was last seen.
func (r *Store) RemoveLastSeen(ctx context.Context, rdb redis.UniversalClient, id string) error {
	pipe := rdb.Pipeline()
	for _, silent := range []bool{false, true} {
		pipe.ZRem(ctx, r.keys.LastSeen(shard(id), silent), id)
	}
	_, err := pipe.Exec(ctx)
	return err
}

// Idle is a session and when it was last seen, to the minute.
type Idle struct {
	ID       string
	LastSeen time.Time
}

// ReadIdle returns at most limit sessions of a lane that were last seen before a time, longest ago first.
func ReadIdle(ctx context.Context, rdb redis.Cmdable, keys redisclient.Keys, lane string, silent bool, before time.Time, limit int) ([]Idle, error) {
	found, err := rdb.ZRangeByScoreWithScores(ctx, keys.LastSeen(lane, silent), &redis.ZRangeBy{
		Min: "-inf", Max: "(" + strconv.FormatInt(before.UnixMilli(), 10), Count: int64(limit),
	}).Result()
	if err != nil {
		return nil, fmt.Errorf("session: read the quiet: %w", err)
	}
	quiet := make([]Idle, len(found))
	for i, z := range found {
		quiet[i] = Idle{z.Member.(string), time.UnixMilli(int64(z.Score)).UTC()}
	}
	return quiet, nil
}

// StillIdle returns those of quiet that nobody has come back to since they were read.
func StillIdle(ctx context.Context, rdb redis.Cmdable, keys redisclient.Keys, lane string, silent bool, quiet []Idle) ([]Idle, error) {
	if len(quiet) == 0 {
		return nil, nil
	}
	ids := make([]string, len(quiet))
	for i, q := range quiet {
		ids[i] = q.ID
	}
	seen, err := rdb.ZMScore(ctx, keys.LastSeen(lane, silent), ids...).Result()
	if err != nil {
		return nil, fmt.Errorf("session: look at the quiet again: %w", err)
	}
	var still []Idle
	for i, q := range quiet {
		if int64(seen[i]) == q.LastSeen.UnixMilli() { // 0 of one who is on the other list by now
			still = append(still, q)
		}
	}
	return still, nil
}

// CountIdle counts the sessions of a lane that were last seen before a time.
func CountIdle(ctx context.Context, rdb redis.Cmdable, keys redisclient.Keys, lane string, silent bool, before time.Time) (int64, error) {
	n, err := rdb.ZCount(ctx, keys.LastSeen(lane, silent), "-inf", "("+strconv.FormatInt(before.UnixMilli(), 10)).Result()
	if err != nil {
		return 0, fmt.Errorf("session: count the quiet: %w", err)
	}
	return n, nil
}

// RemoveIdle takes sessions of one lane off their list, but for those that came back since they were read.
func RemoveIdle(ctx context.Context, rdb redis.UniversalClient, keys redisclient.Keys, lane string, silent bool, quiet []Idle) error {
	seen := make(map[string]int64, len(quiet))
	for _, q := range quiet {
		seen[q.ID] = q.LastSeen.UnixMilli()
	}
	if err := lua.RemoveLastSeen(ctx, rdb, keys.LastSeen(lane, silent), seen); err != nil {
		return fmt.Errorf("session: forget the quiet: %w", err)
	}
	return nil
}
