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

// Shards are the last characters of session ids (Crockford's alphabet). Each character has an equal
// part of all sessions.
const Shards = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

func shard(id string) string { return id[len(id)-1:] }

// enqueueLastSeen queues two commands, ZADD and ZREM, for the time of this request. The sweep of
// idle sessions reads these times. Guests who opted out have separate sorted sets, because the
// sweep emits no event for them. The commands also run for a session cleared meanwhile;
// guest.Finish learns of the erasure in the same round trip and calls RemoveLastSeen.
func (st *Store) enqueueLastSeen(ctx context.Context, pipe redis.Pipeliner, s *Session) {
	optedOut := !s.AllowsEvents()
	pipe.ZAddArgs(ctx, st.keys.LastSeen(shard(s.ID), optedOut), redis.ZAddArgs{
		GT:      true, // of two concurrent requests the later time counts
		Members: []redis.Z{{Score: float64(s.LastSeenAt.UnixMilli()), Member: s.ID}},
	})
	pipe.ZRem(ctx, st.keys.LastSeen(shard(s.ID), !optedOut), s.ID)
}

// RemoveLastSeen deletes the last-seen time of a session, in a single round trip bounded by ctx and
// the timeouts of the client. RemoveLastSeen returns the error of Redis; the call may be repeated.
// A request that saves the session later writes the time again. RemoveLastSeen panics for an empty
// id.
func (st *Store) RemoveLastSeen(ctx context.Context, rdb redis.UniversalClient, id string) error {
	pipe := rdb.Pipeline()
	for _, optedOut := range []bool{false, true} {
		pipe.ZRem(ctx, st.keys.LastSeen(shard(id), optedOut), id)
	}
	_, err := pipe.Exec(ctx)
	return err
}

// Idle is a session and its last-seen time, to the minute: Redis does not store requests within a
// minute of the stored time.
type Idle struct {
	ID       string
	LastSeen time.Time
}

// ReadIdle returns at most limit sessions (0: all) of a shard, last seen before a given time,
// longest ago first. optedOut selects the guests who opted out of telemetry. ReadIdle, StillIdle,
// CountIdle and RemoveIdle take a round trip each, bounded by the context and the timeouts of the
// client, and return the error of Redis, with no sessions. ReadIdle reserves nothing: concurrent
// callers read the same sessions.
func ReadIdle(
	ctx context.Context, rdb redis.Cmdable, keys redisclient.Keys, shard string, optedOut bool, before time.Time, limit int,
) ([]Idle, error) {
	found, err := rdb.ZRangeByScoreWithScores(ctx, keys.LastSeen(shard, optedOut), &redis.ZRangeBy{
		Min: "-inf", Max: "(" + strconv.FormatInt(before.UnixMilli(), 10), Count: int64(limit),
	}).Result()
	if err != nil {
		return nil, fmt.Errorf("session: read idle sessions: %w", err)
	}
	idle := make([]Idle, len(found))
	for i, z := range found {
		idle[i] = Idle{z.Member.(string), time.UnixMilli(int64(z.Score)).UTC()}
	}
	return idle, nil
}

// StillIdle returns the sessions of idle without a request, a clear or a change of telemetry
// consent since ReadIdle, or nil without such sessions. shard and optedOut are those of ReadIdle.
// It takes one round trip, bounded by ctx, and none for an empty idle; it returns the error of
// Redis. A request may come right after: RemoveIdle decides again.
func StillIdle(
	ctx context.Context, rdb redis.Cmdable, keys redisclient.Keys, shard string, optedOut bool, idle []Idle,
) ([]Idle, error) {
	if len(idle) == 0 {
		return nil, nil
	}
	ids := make([]string, len(idle))
	for i, s := range idle {
		ids[i] = s.ID
	}
	seen, err := rdb.ZMScore(ctx, keys.LastSeen(shard, optedOut), ids...).Result()
	if err != nil {
		return nil, fmt.Errorf("session: read idle sessions again: %w", err)
	}
	var still []Idle
	for i, s := range idle {
		// The time is 0 if the guest changed consent: the other set has the session then.
		if int64(seen[i]) == s.LastSeen.UnixMilli() {
			still = append(still, s)
		}
	}
	return still, nil
}

// CountIdle counts the sessions of a shard, last seen before a given time, in one round trip
// bounded by ctx and the timeouts of the client. optedOut selects as in ReadIdle. It returns 0 and
// the error of Redis on a failure.
func CountIdle(
	ctx context.Context, rdb redis.Cmdable, keys redisclient.Keys, shard string, optedOut bool, before time.Time,
) (int64, error) {
	n, err := rdb.ZCount(ctx, keys.LastSeen(shard, optedOut), "-inf", "("+strconv.FormatInt(before.UnixMilli(), 10)).Result()
	if err != nil {
		return 0, fmt.Errorf("session: count idle sessions: %w", err)
	}
	return n, nil
}

// RemoveIdle removes sessions of a shard from the sorted set, except sessions with a request since
// ReadIdle. It runs one script, in one round trip bounded by ctx, or two if the server does not
// know the script; the script costs Redis two lookups per session. It returns the error of Redis;
// the sessions may be removed then, and the call may be repeated. The sessions' other keys expire
// by themselves.
func RemoveIdle(
	ctx context.Context, rdb redis.UniversalClient, keys redisclient.Keys, shard string, optedOut bool, idle []Idle,
) error {
	seen := make(map[string]int64, len(idle))
	for _, s := range idle {
		seen[s.ID] = s.LastSeen.UnixMilli()
	}
	if err := lua.RemoveLastSeen(ctx, rdb, keys.LastSeen(shard, optedOut), seen); err != nil {
		return fmt.Errorf("session: remove idle sessions: %w", err)
	}
	return nil
}
