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

// CadenceKeys are the keys about the requests of a client group, in one slot.
type CadenceKeys struct {
	Group   string // list of the times of the group's requests
	Cookie  string // time of the group's last request with a cookie
	Session string // list of the times of this session's requests; "" without a cookie
}

// Windows are the two sliding windows of the counts.
type Windows struct {
	Short, Long time.Duration // Long is also the TTL of the keys
	MaxTimes    int           // times kept per list; counts end at MaxTimes

}

// CadenceCmd is a queued RecordCadence.
type CadenceCmd struct{ cmd *redis.Cmd }

// CadenceCounts are the numbers of requests up to now. No count exceeds Windows.MaxTimes.
type CadenceCounts struct {
	Group, Session [2]int // in the short window, in the long window
	// since the group's previous request with a cookie; negative: none in the long window
	SinceCookie time.Duration
}

// RecordCadence queues a script on a pipeline for Exec: record a request at now, if record is true,
// and count the requests. After Exec, call Result. now is the caller's clock; a difference of
// clocks between processes shifts the windows. The counts take O(log MaxTimes) steps in Redis. With
// record the keys live for w.Long after the request; without record the script writes nothing.
func RecordCadence(ctx context.Context, pipe redis.Pipeliner, keys CadenceKeys, now time.Time, record bool, w Windows) CadenceCmd {
	names, recordArg := []string{keys.Group, keys.Cookie}, 0
	if keys.Session != "" {
		names = append(names, keys.Session)
	}
	if record {
		recordArg = 1
	}
	return CadenceCmd{recordCadence().EvalSha(ctx, pipe, names,
		now.UnixMilli(), recordArg, w.MaxTimes, w.Short.Milliseconds(), w.Long.Milliseconds())}
}

// Result returns the counts after Exec, this request included if recorded, or the zero
// CadenceCounts and the error of the command. Before Exec it returns an error too. CPU only.
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

// RecordGroupSession queues a script on a pipeline for Exec: record that the session with this hash
// began in a client group at now. sessions is the group's set, own the list of the session's
// request times, in one slot. The set keeps the newest maxSessions sessions for ttl; own lives for
// ownTTL. The Int of the command is the number of the group's sessions. For a session that is in
// the set already, the script only removes expired sessions and counts.
func RecordGroupSession(
	ctx context.Context, pipe redis.Pipeliner, sessions, own, hash string, now time.Time, maxSessions int, ttl, ownTTL time.Duration,
) *redis.Cmd {
	return recordGroupSession().EvalSha(ctx, pipe, []string{sessions, own},
		now.UnixMilli(), hash, maxSessions, ttl.Milliseconds(), ownTTL.Milliseconds())
}
