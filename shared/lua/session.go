package lua

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var visit = load("visit.lua")

// Visited is one visit of a session to be noted. Both keys share a slot.
type Visited struct {
	Session, History string            // keys
	Create           bool              // false: only if the session is still there
	Life             time.Duration     // of both keys from now on
	Fields           map[string]string // of the session's hash, at most a few dozen
	Entry            string            // for the front of the history; empty: none
	MaxEntries       int               // that the history keeps
}

// Visit queues the note of a visit, for a pipeline that Exec runs.
func Visit(ctx context.Context, pipe redis.Pipeliner, v Visited) *redis.Cmd {
	create := 0
	if v.Create {
		create = 1
	}
	args := make([]any, 0, 4+2*len(v.Fields))
	args = append(args, create, v.Life.Milliseconds(), v.Entry, v.MaxEntries)
	for field, value := range v.Fields {
		args = append(args, field, value)
	}
	return visit.EvalSha(ctx, pipe, []string{v.Session, v.History}, args...)
}
