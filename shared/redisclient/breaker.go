package redisclient

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrUnavailable is the error of a command that was not sent, because the last commands got no
// reply.
var ErrUnavailable = errors.New("redisclient: redis is unavailable")

// IsUnavailable reports whether err means an unreachable Redis or a missing reply, for example
// ErrUnavailable, a failed dial, a timeout or context.DeadlineExceeded. It is false for nil, every
// error reply, an absent key (redis.Nil), a cancelled context, a full connection pool
// (redis.ErrPoolTimeout) and a closed client (redis.ErrClosed), also wrapped. Any other error
// counts as unavailable, so pass only errors of a Redis command. Pure; it never fails.
func IsUnavailable(err error) bool {
	if isReply(err) {
		return false
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, redis.ErrPoolTimeout) && !errors.Is(err, redis.ErrClosed)
}

// isReply reports whether the command got a reply, of any kind.
func isReply(err error) bool {
	if err == nil {
		return true
	}
	_, reply := errors.AsType[redis.Error](err) // redis.Nil is a reply
	return reply
}

const (
	maxFailures = 5                     // consecutive failures before the breaker opens
	openTimeout = time.Second           // pause of an open breaker; then a single command tries
	minTimeout  = 25 * time.Millisecond // a timeout of a context shorter than this says nothing about Redis
)

// breaker is a circuit breaker, as a hook of the client: after 5 consecutive failures without a
// reply in between, commands fail with ErrUnavailable at once for 1 s instead of waiting for a
// timeout. After the pause a single command tries; any reply closes the breaker. A closed breaker
// costs a few atomic operations per command and no lock. Safe for concurrent use.
type breaker struct {
	now       func() time.Time
	replies   atomic.Uint64
	failures  atomic.Int32 // since the last reply
	openUntil atomic.Int64 // Unix ns; no command is sent before this time; 0: closed
}

// allow reports whether a command may be sent. After the pause it admits a single command and
// extends the pause for all other commands, so that a try without an end does not close the
// breaker.
func (b *breaker) allow() bool {
	openUntil := b.openUntil.Load()
	if openUntil == 0 {
		return true
	}
	now := b.now()
	return now.UnixNano() >= openUntil && b.openUntil.CompareAndSwap(openUntil, now.Add(openTimeout).UnixNano())
}

// onReply records a reply and closes the breaker; Redis is back, even if the reply belongs to a
// command sent before the breaker opened. Accepted race: a reply between the fifth failure and the
// opening leaves the breaker open with 0 failures; the next reply closes the breaker.
func (b *breaker) onReply() {
	b.replies.Add(1)
	if b.failures.Load() != 0 || b.openUntil.Load() != 0 {
		b.failures.Store(0)
		b.openUntil.Store(0)
	}
}

// onFailure records a failed command; repliesBefore is the number of replies when the command
// began. If Redis has answered other commands since, the failure does not count: this machine is
// overloaded, and opening the breaker would make the overload worse.
func (b *breaker) onFailure(repliesBefore uint64) {
	if b.replies.Load() == repliesBefore && b.failures.Add(1) >= maxFailures {
		b.openUntil.Store(b.now().Add(openTimeout).UnixNano())
	}
}

// ProcessHook protects a single command. The hook returns the error of a context that has ended,
// without sending the command; ErrUnavailable at once while the breaker is open; else the error of
// the command.
func (b *breaker) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		// The handshake of a new connection runs inside the command that needs the connection; only
		// that command counts.
		if isHandshake(cmd) {
			return next(ctx, cmd)
		}
		return b.execute(ctx, func() error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook protects a pipeline; the whole pipeline counts as one command. A pipeline
// that is not sent gets the error of the context or ErrUnavailable on each command.
func (b *breaker) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		sent := false
		err := b.execute(ctx, func() error {
			sent = true
			err := next(ctx, cmds)
			// the error of the pipeline is only the first error, perhaps of an absent key
			for _, cmd := range cmds {
				if IsUnavailable(cmd.Err()) {
					return cmd.Err()
				}
			}
			return err
		})
		if !sent {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

// DialHook counts a failed dial once, however many commands wait for the connection. A successful
// dial is not a reply. The hook never prevents a dial and returns its result unchanged.
func (b *breaker) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		before := b.replies.Load()
		conn, err := next(ctx, network, addr)
		if IsUnavailable(err) {
			b.onFailure(before)
		}
		return conn, err
	}
}

// execute calls send if the breaker allows a command, and records the outcome. It returns the error
// of ctx, ErrUnavailable or the error of send.
func (b *breaker) execute(ctx context.Context, send func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !b.allow() {
		return ErrUnavailable
	}
	deadline, limited := ctx.Deadline()
	tooShort := limited && deadline.Sub(b.now()) < minTimeout
	before := b.replies.Load()
	err := send()
	if isReply(err) {
		b.onReply()
	} else if IsUnavailable(err) && !neverSent(err) && !tooShort {
		b.onFailure(before)
	}
	return err
}

// neverSent reports whether a command never had a connection: the dial failed, and DialHook has
// counted the failure, or the context ended while the command waited for a free connection. The end
// of a context after that appears as a timeout of the connection.
func neverSent(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return err == context.DeadlineExceeded || ok && dial.Op == "dial"
}

// isHandshake reports whether a command belongs to the set-up of a connection.
func isHandshake(cmd redis.Cmder) bool {
	switch cmd.Name() {
	case "hello", "auth", "select", "client":
		return true
	}
	return false
}
