package keyspace

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrAway is the answer to a command that was not sent, because the last ones got none.
var ErrAway = errors.New("keyspace: redis is away")

// IsAway reports whether err means that Redis was not reached or did not answer in time. A reply of any kind, an absent
// key, a caller that hung up and a busy pool of our own do not.
func IsAway(err error) bool {
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
	tolerated = 5                     // failures in a row before commands stop being sent
	pause     = time.Second           // then nothing is sent for so long; after it, one command tries
	fairTry   = 25 * time.Millisecond // a context that ends sooner says nothing about Redis
)

// breaker keeps a Redis that is gone from costing every command its timeout. It is a hook of the client: closed it
// costs a few atomic operations, so it may stand in the way of everything.
type breaker struct {
	now      func() time.Time
	answers  atomic.Uint64
	failures atomic.Int32 // since the last answer
	shut     atomic.Int64 // Unix ns until which nothing is sent; 0: open to all
}

// allow reports whether a command may be sent. Of those that come after the pause one is let through to try; it extends
// the pause for all others, so a try that never ends does not open the door either.
func (b *breaker) allow() bool {
	shut := b.shut.Load()
	if shut == 0 {
		return true
	}
	now := b.now()
	return now.UnixNano() >= shut && b.shut.CompareAndSwap(shut, now.Add(pause).UnixNano())
}

// answered is told of every reply, even one that was on its way when the door shut: Redis is back. One that comes
// between the last failure and its shutting the door leaves it shut with no failures; the next answer opens it.
func (b *breaker) answered() {
	b.answers.Add(1)
	if b.failures.Load() != 0 || b.shut.Load() != 0 {
		b.failures.Store(0)
		b.shut.Store(0)
	}
}

// failed is told of what failed, and how many answers there had been when it began. If others were answered since,
// Redis is there: it is this machine that has more to do than it can, and shutting the door would make that worse.
func (b *breaker) failed(answersBefore uint64) {
	if b.answers.Load() == answersBefore && b.failures.Add(1) >= tolerated {
		b.shut.Store(b.now().Add(pause).UnixNano())
	}
}

// ProcessHook guards a single command.
func (b *breaker) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		// The greeting of a new connection runs inside the command that needed it, which is the one that counts.
		if handshake(cmd) {
			return next(ctx, cmd)
		}
		return b.guard(ctx, func() error { return next(ctx, cmd) })
	}
}

// ProcessPipelineHook guards a pipeline as one.
func (b *breaker) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		sent := false
		err := b.guard(ctx, func() error {
			sent = true
			err := next(ctx, cmds)
			for _, cmd := range cmds { // the pipeline's own error is only its first: perhaps an absent key
				if IsAway(cmd.Err()) {
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
		before := b.answers.Load()
		conn, err := next(ctx, network, addr)
		if IsAway(err) {
			b.failed(before)
		}
		return conn, err
	}
}

func (b *breaker) guard(ctx context.Context, send func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !b.allow() {
		return ErrAway
	}
	deadline, limited := ctx.Deadline()
	hasty := limited && deadline.Sub(b.now()) < fairTry
	before := b.answers.Load()
	err := send()
	if isReply(err) {
		b.answered()
	} else if IsAway(err) && !unsent(err) && !hasty {
		b.failed(before)
	}
	return err
}

// unsent reports that a command never had a connection: dialling failed, which DialHook has counted, or its context
// ended while it waited for one to be free. A context that ends later shows as a timeout of the connection.
func unsent(err error) bool {
	dial, ok := errors.AsType[*net.OpError](err)
	return err == context.DeadlineExceeded || ok && dial.Op == "dial"
}

func handshake(cmd redis.Cmder) bool {
	switch cmd.Name() {
	case "hello", "auth", "select", "client":
		return true
	}
	return false
}
