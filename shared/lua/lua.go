// Package lua owns the scripts that run inside Redis: one file each, one typed function each; it never decides what an
// answer means.
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

// sourceOf finds a script again by the digest under which it was sent: string by string.
var sourceOf sync.Map

// load names one of the embedded scripts. It is read when it is first sent: a function sends a few of them, and its start is waited for.
func load(file string) func() *redis.Script {
	return sync.OnceValue(func() *redis.Script {
		src, err := sources.ReadFile(file)
		if err != nil {
			panic(err) // unreachable: a test holds the names against the files
		}
		s := redis.NewScript(string(src))
		sourceOf.Store(s.Hash(), string(src))
		return s
	})
}

// Exec runs a pipeline like its own Exec does, in one round trip, and once more those of our scripts that the server
// had forgotten; their answers come to the commands they were asked with. Scripts of one pipeline must therefore not
// depend on each other's order. Its error is the first that is not an absent key.
func Exec(ctx context.Context, pipe redis.Pipeliner) error {
	cmds, _ := pipe.Exec(ctx) // each command has its own error
	again := map[*redis.Cmd]*redis.Cmd{}
	for _, cmd := range cmds {
		script, ok := cmd.(*redis.Cmd)
		if !ok || script.Err() == nil || !redis.HasErrorPrefix(script.Err(), "NOSCRIPT") {
			continue
		}
		// EVALSHA digest … becomes EVAL source …, which also makes the server remember it.
		source, _ := sourceOf.Load(script.Args()[1])
		args := append([]any{"eval", source}, script.Args()[2:]...)
		again[script] = pipe.Do(ctx, args...)
	}
	if len(again) > 0 {
		pipe.Exec(ctx)
		for script, retry := range again {
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
