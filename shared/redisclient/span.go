package redisclient

import (
	"context"
	"errors"
	"net"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/otlp"
)

// spans is a client hook that records a trace span per command or pipeline: name and outcome, no
// key and no value.
type spans struct{}

// ProcessHook returns a hook that records a span per command. Without a traced request the hook
// records no span. The hook does no I/O besides the command and returns the error of the command
// unchanged.
func (spans) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ctx, span := otlp.StartRedis(ctx, cmd.Name(), 0)
		err := next(ctx, cmd)
		span.End(errorKind(err))
		return err
	}
}

// ProcessPipelineHook returns a hook that records a span per pipeline, as ProcessHook does.
func (spans) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		ctx, span := otlp.StartRedis(ctx, "PIPELINE", len(cmds))
		err := next(ctx, cmds)
		span.End(errorKind(err))
		return err
	}
}

// DialHook returns a hook without a span, which only calls next.
func (spans) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// errorKind returns the error type of a span, or "" for success. An absent key is a success, and so
// is NOSCRIPT, after which lua.Exec sends the script again.
func errorKind(err error) string {
	switch {
	case err == nil || redis.HasErrorPrefix(err, "NOSCRIPT") || errors.Is(err, redis.Nil):
		return ""
	case errors.Is(err, ErrUnavailable):
		return "not-sent"
	case IsUnavailable(err):
		return "away"
	case isReply(err):
		return "refused"
	}
	return "ours" // a full pool or a cancelled caller
}
