package keyspace

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/telemetry"
)

// spans is a hook of the client that tells a trace of commands: their names and how they ended, no key and no value.
type spans struct{}

func (spans) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ctx, part := telemetry.Redis(ctx, cmd.Name(), 0)
		err := next(ctx, cmd)
		part.End(failure(err))
		return err
	}
}

func (spans) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		ctx, part := telemetry.Redis(ctx, "PIPELINE", len(cmds))
		err := next(ctx, cmds)
		part.End(failure(err))
		return err
	}
}

func (spans) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// failure names what went wrong; an absent key is an answer, and a script that is loaded again after one is not a
// failure of anything.
func failure(err error) string {
	switch {
	case err == nil || redis.HasErrorPrefix(err, "NOSCRIPT") || errors.Is(err, redis.Nil):
		return ""
	case errors.Is(err, ErrAway):
		return "not-sent"
	case IsAway(err):
		return "away"
	case isReply(err):
		return "refused"
	}
	return "ours" // a full pool, or a caller who left
}
