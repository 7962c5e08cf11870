package redistest

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Counter counts a client's round trips: a command is one, a whole pipeline is one.
type Counter struct{ n atomic.Int64 }

// Count counts what c sends from now on. A client made from c before does not count.
func Count(c redis.UniversalClient) *Counter {
	counter := &Counter{}
	c.AddHook(counter)
	return counter
}

// TakeCount is the number of round trips since the last Take.
func (c *Counter) TakeCount() int { return int(c.n.Swap(0)) }

// DialHook passes on: a connection is no round trip.
func (c *Counter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook counts one command.
func (c *Counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook counts one pipeline or transaction.
func (c *Counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.count(cmds...)
		return next(ctx, cmds)
	}
}

// count leaves out what a new connection says of itself, because that is said once per connection, not per request.
func (c *Counter) count(cmds ...redis.Cmder) {
	for _, cmd := range cmds {
		switch cmd.Name() {
		case "hello", "auth", "select", "client", "readonly":
		default:
			c.n.Add(1)
			return
		}
	}
}
