package session

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
)

// Lanes are the last characters a session's id may have, Crockford's alphabet: equal parts of all sessions.
const Lanes = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

func lane(id string) string { return id[len(id)-1:] }

// noteSeen writes down when the session was last here, for the sweep that ends those gone quiet, and whether that may
// be told. A session that was cleared meanwhile is noted too: who learns of that takes it back.
func (r *Room) noteSeen(ctx context.Context, pipe redis.Pipeliner, s *Session) {
	silent := !s.Emits()
	pipe.ZAddArgs(ctx, r.keys.Seen(lane(s.ID), silent), redis.ZAddArgs{
		GT:      true, // of two visits at once the later one counts
		Members: []redis.Z{{Score: float64(s.LastSeenAt.UnixMilli()), Member: s.ID}},
	})
	pipe.ZRem(ctx, r.keys.Seen(lane(s.ID), !silent), s.ID)
}

// Unsee forgets when a session was last seen.
func (r *Room) Unsee(ctx context.Context, rdb redis.UniversalClient, id string) error {
	pipe := rdb.Pipeline()
	for _, silent := range []bool{false, true} {
		pipe.ZRem(ctx, r.keys.Seen(lane(id), silent), id)
	}
	_, err := pipe.Exec(ctx)
	return err
}

// Quiet is a session and when it was last seen, to the minute.
type Quiet struct {
	ID       string
	LastSeen time.Time
}

// ReadQuiet returns at most limit sessions of a lane that were last seen before a time, longest ago first.
func ReadQuiet(ctx context.Context, rdb redis.Cmdable, keys keyspace.Keys, lane string, silent bool, before time.Time, limit int) ([]Quiet, error) {
	found, err := rdb.ZRangeByScoreWithScores(ctx, keys.Seen(lane, silent), &redis.ZRangeBy{
		Min: "-inf", Max: "(" + strconv.FormatInt(before.UnixMilli(), 10), Count: int64(limit),
	}).Result()
	if err != nil {
		return nil, fmt.Errorf("session: read the quiet: %w", err)
	}
	quiet := make([]Quiet, len(found))
	for i, z := range found {
		quiet[i] = Quiet{z.Member.(string), time.UnixMilli(int64(z.Score)).UTC()}
	}
	return quiet, nil
}

// StillQuiet returns those of quiet that nobody has come back to since they were read.
func StillQuiet(ctx context.Context, rdb redis.Cmdable, keys keyspace.Keys, lane string, silent bool, quiet []Quiet) ([]Quiet, error) {
	if len(quiet) == 0 {
		return nil, nil
	}
	ids := make([]string, len(quiet))
	for i, q := range quiet {
		ids[i] = q.ID
	}
	seen, err := rdb.ZMScore(ctx, keys.Seen(lane, silent), ids...).Result()
	if err != nil {
		return nil, fmt.Errorf("session: look at the quiet again: %w", err)
	}
	var still []Quiet
	for i, q := range quiet {
		if int64(seen[i]) == q.LastSeen.UnixMilli() { // 0 of one who is on the other list by now
			still = append(still, q)
		}
	}
	return still, nil
}

// CountQuiet counts the sessions of a lane that were last seen before a time.
func CountQuiet(ctx context.Context, rdb redis.Cmdable, keys keyspace.Keys, lane string, silent bool, before time.Time) (int64, error) {
	n, err := rdb.ZCount(ctx, keys.Seen(lane, silent), "-inf", "("+strconv.FormatInt(before.UnixMilli(), 10)).Result()
	if err != nil {
		return 0, fmt.Errorf("session: count the quiet: %w", err)
	}
	return n, nil
}

// ForgetQuiet takes sessions of one lane off their list, but for those that came back since they were read.
func ForgetQuiet(ctx context.Context, rdb redis.UniversalClient, keys keyspace.Keys, lane string, silent bool, quiet []Quiet) error {
	seen := make(map[string]int64, len(quiet))
	for _, q := range quiet {
		seen[q.ID] = q.LastSeen.UnixMilli()
	}
	if err := lua.Unsee(ctx, rdb, keys.Seen(lane, silent), seen); err != nil {
		return fmt.Errorf("session: forget the quiet: %w", err)
	}
	return nil
}
