package lua

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	cadence = load("cadence.lua")
	collide = load("collide.lua")
)

// CadenceKeys are what is remembered of a client group's requests, in one slot.
type CadenceKeys struct {
	Group  string // list of times
	Cookie string // when one of them last had a cookie
	Own    string // list of times of this session's; empty without a cookie
}

// Windows are how far back requests are counted, and how many times of them are kept to be counted.
type Windows struct {
	Short, Long time.Duration // Long is also how long the keys live
	Kept        int
}

// Counted is the queued answer to Cadence.
type Counted struct{ cmd *redis.Cmd }

// Counts are requests up to now. A count ends at what is kept.
type Counts struct {
	Group, Own  [2]int        // in the short window and in the long one
	SinceCookie time.Duration // since the group's last request with a cookie before this one; negative: none in the long window
}

// Cadence queues the note of a request, unless it is only looked, and the counts with it, for a pipeline that Exec runs.
func Cadence(ctx context.Context, pipe redis.Pipeliner, keys CadenceKeys, now time.Time, note bool, w Windows) Counted {
	names, noted := []string{keys.Group, keys.Cookie}, 0
	if keys.Own != "" {
		names = append(names, keys.Own)
	}
	if note {
		noted = 1
	}
	return Counted{cadence().EvalSha(ctx, pipe, names,
		now.UnixMilli(), noted, w.Kept, w.Short.Milliseconds(), w.Long.Milliseconds())}
}

// Result is the answer, once the pipeline has run.
func (c Counted) Result() (Counts, error) {
	n, err := c.cmd.Int64Slice()
	if err != nil {
		return Counts{}, err
	}
	return Counts{
		Group: [2]int{int(n[0]), int(n[1])}, Own: [2]int{int(n[2]), int(n[3])},
		SinceCookie: time.Duration(n[4]) * time.Millisecond,
	}, nil
}

// Collide queues the note that a session, by its mark, began at a client group, for a pipeline that Exec runs. sessions and
// own share a slot; of the sessions kept the oldest go first. The command's Int is how many the group has.
func Collide(
	ctx context.Context, pipe redis.Pipeliner, sessions, own, mark string, now time.Time, kept int, life, ownLife time.Duration,
) *redis.Cmd {
	return collide().EvalSha(ctx, pipe, []string{sessions, own},
		now.UnixMilli(), mark, kept, life.Milliseconds(), ownLife.Milliseconds())
}
