package redistest

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Counter counts the round trips of a client: a command or a whole pipeline is a single round trip.
// Safe for concurrent use.
type Counter struct{ n atomic.Int64 }

// Count counts the round trips of c from now on, except those of clients derived from c before.
func Count(c redis.UniversalClient) *Counter {
	counter := &Counter{}
	c.AddHook(counter)
	return counter
}

// TakeCount returns the number of round trips since the last TakeCount.
func (c *Counter) TakeCount() int { return int(c.n.Swap(0)) }

// DialHook counts nothing.
func (c *Counter) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook counts a command.
func (c *Counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.count(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook counts a pipeline or transaction.
func (c *Counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.count(cmds...)
		return next(ctx, cmds)
	}
}

// count ignores the greeting of a new connection: it belongs to the connection, not to a request.
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
