package lua

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	updateSession  = load("update_session.lua")
	pushViewed     = load("push_viewed.lua")
	removeLastSeen = load("remove_last_seen.lua")
)

// SessionUpdate is one visit of a session to be noted. All keys share a slot.
type SessionUpdate struct {
	Session, History, Cleared string            // keys
	Lists                     []string          // keys of what else lives as long
	Create                    bool              // false: only if the session is still there
	TTL                       time.Duration     // of all keys from now on
	Defaults                  map[string]string // of the session's hash, for what has no value, or "?"
	Changes                   map[string]string // of the session's hash
	HistoryEntry              string            // for the front of the history; empty: none
	MaxHistory                int               // that the history keeps
}

// SessionUpdateResult is what became of a visit.
type SessionUpdateResult struct {
	Cleared          bool   // the session was cleared meanwhile, and nothing was written
	Missing          bool   // Redis lost the session meanwhile, and nothing was written
	TelemetryConsent string // the consent as it stands now
	PreviousLocale   string // what it was until this visit changed it; else empty
	PreviousCurrency string // likewise
}

// UpdateSession queues the note of a visit, for a pipeline that Exec runs; then ReadNoted says what became of it.
func UpdateSession(ctx context.Context, pipe redis.Pipeliner, v SessionUpdate) *redis.Cmd {
	create := 0
	if v.Create {
		create = 1
	}
	args := make([]any, 0, 5+2*len(v.Defaults)+2*len(v.Changes))
	args = append(args, create, v.TTL.Milliseconds(), v.HistoryEntry, v.MaxHistory, 2*len(v.Defaults))
	for _, fields := range []map[string]string{v.Defaults, v.Changes} {
		for field, value := range fields {
			args = append(args, field, value)
		}
	}
	return updateSession().EvalSha(ctx, pipe, append([]string{v.Session, v.History, v.Cleared}, v.Lists...), args...)
}

// ParseSessionUpdate reads the answer to Visit.
func ParseSessionUpdate(cmd *redis.Cmd) (SessionUpdateResult, error) {
	answer, err := cmd.Slice()
	if err != nil {
		return SessionUpdateResult{}, err
	}
	is := answer[0].(int64)
	return SessionUpdateResult{is == 0, is < 0, answer[1].(string), answer[2].(string), answer[3].(string)}, nil
}

// ViewedEntry is one entry for the list of what was recently viewed. Entry is JSON that holds ID, by which other entries of
// the same are found, and a member viewedAt, by which they are ordered.
type ViewedEntry struct{ ID, Entry string }

// PushViewed queues entries for their places in the list, which keeps most of them; none is pushed for a session that
// was cleared.
func PushViewed(ctx context.Context, pipe redis.Pipeliner, list, cleared string, life time.Duration, most int, entries ...ViewedEntry) *redis.Cmd {
	args := make([]any, 0, 2+2*len(entries))
	args = append(args, life.Milliseconds(), most)
	for _, e := range entries {
		args = append(args, e.ID, e.Entry)
	}
	return pushViewed().EvalSha(ctx, pipe, []string{list, cleared}, args...)
}

// RemoveLastSeen takes sessions off a list of when they were last seen, Unix ms by id, but for those whose time there is another.
func RemoveLastSeen(ctx context.Context, rdb redis.UniversalClient, list string, seen map[string]int64) error {
	args := make([]any, 0, 2*len(seen))
	for id, at := range seen {
		args = append(args, id, at)
	}
	return removeLastSeen().Run(ctx, rdb, []string{list}, args...).Err()
}
