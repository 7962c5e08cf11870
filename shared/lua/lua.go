// Package lua owns the scripts that run inside Redis: one file and one typed Go function per
// script. It never interprets a reply beyond its types and names no keys. A script takes 10 to 50
// µs of Redis' only thread.
//
// A function with a pipeline only queues a command: it does no I/O and never fails. After Exec, the
// command has the reply or an error. A function with a client runs the script at once, in 1 round
// trip, or 2 if the server does not know the script. Both set no time limit of their own: the
// client and ctx do. After a timeout the script may have run. No call is repeated, except with the
// source after NOSCRIPT; that first call had no effect.
//
// Without Redis, and after an exceeded deadline, the error satisfies redisclient.IsUnavailable,
// except a cancelled context (context.Canceled) and a full connection pool (redis.ErrPoolTimeout).
// An error reply, for example for a key of another type, ends a script; its earlier writes stay.
// Arguments are not checked: durations are cut to whole milliseconds, and a TTL must be at least 1
// ms. The functions are safe for concurrent use, each pipeline by one goroutine at a time. The
// first use of a script in a process also reads and hashes the embedded source, under a lock of the
// script.
package lua

import (
	"context"
	"embed"
	"errors"
	"sync"

	"github.com/redis/go-redis/v9"
)

//go:embed *.lua
var sources embed.FS

// sourceOf maps the SHA-1 of a sent script to the source: string to string.
var sourceOf sync.Map

// load returns a getter of an embedded script. The getter reads the file on first use, because a
// deployed function sends only a few scripts and the start should be fast.
func load(file string) func() *redis.Script {
	return sync.OnceValue(func() *redis.Script {
		src, err := sources.ReadFile(file)
		if err != nil {
			panic(err) // unreachable: a test compares the names with the files
		}
		s := redis.NewScript(string(src))
		sourceOf.Store(s.Hash(), string(src))
		return s
	})
}

// Exec runs a pipeline with scripts of this package in 1 round trip; an empty pipeline costs none.
// If the server does not know some of the scripts (NOSCRIPT), for example after a restart, Exec
// sends only these again, with source, in a second round trip, and stores the replies in the
// original commands. So the scripts of a pipeline must not depend on each other's order. Exec
// leaves the pipeline empty.
//
// Exec returns the first error of any command except an absent key (redis.Nil); each command keeps
// its own error. Commands with a reply have taken effect; the effect of a command without a reply
// is unknown. Without Redis every command has an error for which redisclient.IsUnavailable is true.
// It is false for a cancelled ctx (context.Canceled; then the pipeline is not sent) and for
// redis.ErrPoolTimeout. Time limits are those of the client and of ctx. Exec takes no lock of this
// package.
func Exec(ctx context.Context, pipe redis.Pipeliner) error {
	cmds, _ := pipe.Exec(ctx) // every command has an error of its own
	retries := map[*redis.Cmd]*redis.Cmd{}
	for _, cmd := range cmds {
		script, ok := cmd.(*redis.Cmd)
		if !ok || script.Err() == nil || !redis.HasErrorPrefix(script.Err(), "NOSCRIPT") {
			continue
		}
		// EVALSHA digest … becomes EVAL source …; EVAL also loads the script on the server.
		source, _ := sourceOf.Load(script.Args()[1])
		args := append([]any{"eval", source}, script.Args()[2:]...)
		retries[script] = pipe.Do(ctx, args...)
	}
	if len(retries) > 0 {
		pipe.Exec(ctx)
		for script, retry := range retries {
			script.SetVal(retry.Val())
			script.SetErr(retry.Err())
		}
	}
	for _, cmd := range cmds {
		if err := cmd.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	return nil
}
