package redisclient

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrUnavailable is the answer to a command that was not sent, because the last ones got none.
var ErrUnavailable = errors.New("keyspace: redis is away")

// IsUnavailable reports whether err means that Redis was not reached or did not answer in time. A reply of any kind, an absent
// key, a caller that hung up and a busy pool of our own do not.
func IsUnavailable(err error) bool {
	if isReply(err) {
		return false
	}
	return !errors.Is(err, context.Canceled) && !errors.Is(err, redis.ErrPoolTimeout) && !errors.Is(err, redis.ErrClosed)
}

func isReply(err error) bool {
	if err == nil {
		return true
	}
	_, reply := errors.AsType[redis.Error](err) // redis.Nil is one
	return reply
}

const (
	maxFailures = 5                     // failures in a row before commands stop being sent
	openTimeout = time.Second           // then nothing is sent for so long; after it, one command tries
	minTimeout  = 25 * time.Millisecond // a context that ends sooner says nothing about Redis
)

// breaker keeps a Redis that is gone from costing every command its timeout. It is a hook of the client: closed it
// costs a few atomic operations, so it may stand in the way of everything.
type breaker struct {
	now       func() time.Time
	replies   atomic.Uint64
	failures  atomic.Int32 // since the last answer
	openUntil atomic.Int64 // Unix ns until which nothing is sent; 0: open to all
}

// allow reports whether a command may be sent. Of those that come after the pause one is let through to try; it extends
// the pause for all others, so a try that never ends does not open the door either.
func (b *breaker) allow() bool {
	shut := b.openUntil.Load()
	if shut == 0 {
		return true
	}
	now := b.now()
	return now.UnixNano() >= shut && b.openUntil.CompareAndSwap(shut, now.Add(openTimeout).UnixNano())
}

// onReply is told of every reply, even one that was on its way when the door shut: Redis is back. One that comes
// between the last failure and its shutting the door leaves it shut with no failures; the next answer opens it.
func (b *breaker) onReply() {
	b.replies.Add(1)
	if b.failures.Load() != 0 || b.openUntil.Load() != 0 {
		b.failures.Store(0)
		b.openUntil.Store(0)
	}
}

// onFailure is told of what failed, and how many answers there had been when it began. If others were answered since,
// Redis is there: it is this machine that has more to do than it can, and shutting the door would make that worse.
func (b *breaker) onFailure(answersBefore uint64) {
	if b.replies.Load() == answersBefore && b.failures.Add(1) >= maxFailures {
		b.openUntil.Store(b.now().Add(openTimeout).UnixNano())
	}
}

// ProcessHook guards a single command.
func (b *breaker) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		// The greeting of a new connection runs inside the command that needed it, which is the one that counts.
		if isHandshake(cmd) {
			return next(ctx, cmd)
		}
		return b.execute(ctx, func() error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook guards a pipeline as one.
func (b *breaker) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		sent := false
		err := b.execute(ctx, func() error {
			sent = true
			err := next(ctx, cmds)
			for _, cmd := range cmds { // the pipeline's own error is only its first: perhaps an absent key
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

// DialHook counts a failed dial once, however many commands waited for it. A dial that succeeds is no answer yet.
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

func (b *breaker) execute(ctx context.Context, send func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !b.allow() {
		return ErrUnavailable
	}
	deadline, limited := ctx.Deadline()
	hasty := limited && deadline.Sub(b.now()) < minTimeout
	before := b.replies.Load()
	err := send()
	if isReply(err) {
		b.onReply()
	} else if IsUnavailable(err) && !neverSent(err) && !hasty {
		b.onFailure(before)
	}
	return err
}

// neverSent reports that a command never had a connection: dialling failed, which DialHook has counted, or its context
// ended while it waited for one to be free. A context that ends later shows as a timeout of the connection.
func neverSent(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return err == context.DeadlineExceeded || ok && dial.Op == "dial"
}

func isHandshake(cmd redis.Cmder) bool {
	switch cmd.Name() {
	case "hello", "auth", "select", "client":
		return true
	}
	return false
}
