package lua

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	visit  = load("visit.lua")
	recent = load("recent.lua")
	unsee  = load("unsee.lua")
)

// Visited is one visit of a session to be noted. All keys share a slot.
type Visited struct {
	Session, History, Cleared string            // keys
	Lists                     []string          // keys of what else lives as long
	Create                    bool              // false: only if the session is still there
	Life                      time.Duration     // of all keys from now on
	Defaults                  map[string]string // of the session's hash, for what has no value, or "?"
	Changes                   map[string]string // of the session's hash
	Entry                     string            // for the front of the history; empty: none
	MaxEntries                int               // that the history keeps
}

// Noted is what became of a visit.
type Noted struct {
	Gone      bool   // the session was cleared meanwhile, and nothing was written
	Lost      bool   // Redis lost the session meanwhile, and nothing was written
	Telemetry string // the consent as it stands now
	Locale    string // what it was until this visit changed it; else empty
	Currency  string // likewise
}

// Visit queues the note of a visit, for a pipeline that Exec runs; then ReadNoted says what became of it.
func Visit(ctx context.Context, pipe redis.Pipeliner, v Visited) *redis.Cmd {
	create := 0
	if v.Create {
		create = 1
	}
	args := make([]any, 0, 5+2*len(v.Defaults)+2*len(v.Changes))
	args = append(args, create, v.Life.Milliseconds(), v.Entry, v.MaxEntries, 2*len(v.Defaults))
	for _, fields := range []map[string]string{v.Defaults, v.Changes} {
		for field, value := range fields {
			args = append(args, field, value)
		}
	}
	return visit().EvalSha(ctx, pipe, append([]string{v.Session, v.History, v.Cleared}, v.Lists...), args...)
}

// ReadNoted reads the answer to Visit.
func ReadNoted(cmd *redis.Cmd) (Noted, error) {
	answer, err := cmd.Slice()
	if err != nil {
		return Noted{}, err
	}
	is := answer[0].(int64)
	return Noted{is == 0, is < 0, answer[1].(string), answer[2].(string), answer[3].(string)}, nil
}

// Viewed is one entry for the list of what was recently viewed. Entry is JSON that holds ID, by which other entries of
// the same are found, and a member viewedAt, by which they are ordered.
type Viewed struct{ ID, Entry string }

// PushViewed queues entries for their places in the list, which keeps most of them; none is pushed for a session that
// was cleared.
func PushViewed(ctx context.Context, pipe redis.Pipeliner, list, cleared string, life time.Duration, most int, entries ...Viewed) *redis.Cmd {
	args := make([]any, 0, 2+2*len(entries))
	args = append(args, life.Milliseconds(), most)
	for _, e := range entries {
		args = append(args, e.ID, e.Entry)
	}
	return recent().EvalSha(ctx, pipe, []string{list, cleared}, args...)
}

// Unsee takes sessions off a list of when they were last seen, Unix ms by id, but for those whose time there is another.
func Unsee(ctx context.Context, rdb redis.UniversalClient, list string, seen map[string]int64) error {
	args := make([]any, 0, 2*len(seen))
	for id, at := range seen {
		args = append(args, id, at)
	}
	return unsee().Run(ctx, rdb, []string{list}, args...).Err()
}
