package lua

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	recordCadence      = load("cadence.lua")
	recordGroupSession = load("record_group_session.lua")
)

// CadenceKeys are what is remembered of a client group's requests, in one slot.
type CadenceKeys struct {
	Group   string // list of times
	Cookie  string // when one of them last had a cookie
	Session string // list of times of this session's; empty without a cookie
}

// Windows are how far back requests are counted, and how many times of them are kept to be counted.
type Windows struct {
	Short, Long time.Duration // Long is also how long the keys live
	MaxTimes    int
}

// CadenceCmd is the queued answer to Cadence.
type CadenceCmd struct{ cmd *redis.Cmd }

// CadenceCounts are requests up to now. A count ends at what is kept.
type CadenceCounts struct {
	Group, Session [2]int        // in the short window and in the long one
	SinceCookie    time.Duration // since the group's last request with a cookie before this one; negative: none in the long window
}

// RecordCadence queues the note of a request, unless it is only looked, and the counts with it, for a pipeline that Exec runs.
func RecordCadence(ctx context.Context, pipe redis.Pipeliner, keys CadenceKeys, now time.Time, note bool, w Windows) CadenceCmd {
	names, noted := []string{keys.Group, keys.Cookie}, 0
	if keys.Session != "" {
		names = append(names, keys.Session)
	}
	if note {
		noted = 1
	}
	return CadenceCmd{recordCadence().EvalSha(ctx, pipe, names,
		now.UnixMilli(), noted, w.MaxTimes, w.Short.Milliseconds(), w.Long.Milliseconds())}
}

// Result is the answer, once the pipeline has run.
func (c CadenceCmd) Result() (CadenceCounts, error) {
	n, err := c.cmd.Int64Slice()
	if err != nil {
		return CadenceCounts{}, err
	}
	return CadenceCounts{
		Group: [2]int{int(n[0]), int(n[1])}, Session: [2]int{int(n[2]), int(n[3])},
		SinceCookie: time.Duration(n[4]) * time.Millisecond,
	}, nil
}

// RecordGroupSession queues the note that a session, by its mark, began at a client group, for a pipeline that Exec runs. sessions and
// own share a slot; of the sessions kept the oldest go first. The command's Int is how many the group has.
func RecordGroupSession(
	ctx context.Context, pipe redis.Pipeliner, sessions, own, mark string, now time.Time, kept int, life, ownLife time.Duration,
) *redis.Cmd {
	return recordGroupSession().EvalSha(ctx, pipe, []string{sessions, own},
		now.UnixMilli(), mark, kept, life.Milliseconds(), ownLife.Milliseconds())
}
