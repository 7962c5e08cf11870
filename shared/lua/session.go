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

// SessionUpdate is the update of a session after a request. All keys share a slot.
type SessionUpdate struct {
	Session, History, Cleared string // keys: hash, history list, marker of a cleared session

	Lists        []string          // keys of other lists with the same TTL
	Create       bool              // false: only update an existing session
	TTL          time.Duration     // new TTL of all keys
	Defaults     map[string]string // fields to set if they have no value or "?"
	Changes      map[string]string // fields to set
	HistoryEntry string            // new first entry of the history; "": none
	MaxHistory   int               // maximum length of the history
}

// SessionUpdateResult is the reply to UpdateSession.
type SessionUpdateResult struct {
	Cleared          bool   // the session has been cleared, and the script wrote nothing
	Missing          bool   // the session is no longer in Redis, and the script wrote nothing
	TelemetryConsent string // the current consent
	PreviousLocale   string // the locale before this update, if changed by the update; else ""
	PreviousCurrency string // the currency before, likewise
}

// UpdateSession queues a script on a pipeline for Exec: write the changed fields of a session,
// renew the TTLs and push the history entry. The script writes nothing for a cleared session, and
// nothing for a missing session unless u.Create. A locale or currency that the guest chose since
// the request read the session keeps its value, unless u is an explicit choice too: of two, the
// later write wins. A repeated script pushes the history entry again. u.TTL must be positive:
// otherwise the keys are deleted. After Exec, pass the result to ParseSessionUpdate.
func UpdateSession(ctx context.Context, pipe redis.Pipeliner, u SessionUpdate) *redis.Cmd {
	create := 0
	if u.Create {
		create = 1
	}
	args := make([]any, 0, 5+2*len(u.Defaults)+2*len(u.Changes))
	args = append(args, create, u.TTL.Milliseconds(), u.HistoryEntry, u.MaxHistory, 2*len(u.Defaults))
	for _, fields := range []map[string]string{u.Defaults, u.Changes} {
		for field, value := range fields {
			args = append(args, field, value)
		}
	}
	return updateSession().EvalSha(ctx, pipe, append([]string{u.Session, u.History, u.Cleared}, u.Lists...), args...)
}

// ParseSessionUpdate returns the reply to UpdateSession after Exec, or the zero result and the
// error of the command. A cleared or missing session is a result, not an error. Before Exec it
// returns an error too. CPU only.
func ParseSessionUpdate(cmd *redis.Cmd) (SessionUpdateResult, error) {
	reply, err := cmd.Slice()
	if err != nil {
		return SessionUpdateResult{}, err
	}
	code := reply[0].(int64)
	return SessionUpdateResult{code == 0, code < 0, reply[1].(string), reply[2].(string), reply[3].(string)}, nil
}

// ViewedEntry is an entry of the recently viewed list. Entry is JSON and contains ID, the property
// id, and the member viewedAt. The list has one entry per ID and is ordered by viewedAt, newest
// first.
type ViewedEntry struct{ ID, Entry string }

// PushViewed queues a script on a pipeline for Exec: insert entries into the list at the positions
// of their times and keep the newest maxEntries entries for ttl. An entry with a later view in the
// list is dropped; an earlier view of the same property is removed. For a cleared session the
// script writes nothing. The reply is the length of the list, or 0 for a cleared session. Redis
// reads and writes the whole list. A repeated push does no harm.
func PushViewed(ctx context.Context, pipe redis.Pipeliner, list, cleared string, ttl time.Duration, maxEntries int, entries ...ViewedEntry) *redis.Cmd {
	args := make([]any, 0, 2+2*len(entries))
	args = append(args, ttl.Milliseconds(), maxEntries)
	for _, e := range entries {
		args = append(args, e.ID, e.Entry)
	}
	return pushViewed().EvalSha(ctx, pipe, []string{list, cleared}, args...)
}

// RemoveLastSeen removes sessions from a last-seen set, except sessions with a time other than in
// seen (Unix ms by session id): these were seen again. Sessions not in the set are skipped, so a
// repeated call does no harm. 1 round trip, 2 if the server does not know the script, also for an
// empty seen. Without Redis the error satisfies redisclient.IsUnavailable, except a cancelled ctx
// and redis.ErrPoolTimeout; after a timeout the sessions may have been removed.
func RemoveLastSeen(ctx context.Context, rdb redis.UniversalClient, list string, seen map[string]int64) error {
	args := make([]any, 0, 2*len(seen))
	for id, at := range seen {
		args = append(args, id, at)
	}
	return removeLastSeen().Run(ctx, rdb, []string{list}, args...).Err()
}
