package redistest

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// After runs do once, when the next pipeline of c has been answered and before its caller goes on: what happens between
// two round trips of one request. What do itself sends through c is no reason to run it again.
func After(c redis.UniversalClient, do func()) {
	h := &after{}
	h.do.Store(&do)
	c.AddHook(h)
}

type after struct{ do atomic.Pointer[func()] }

func (h *after) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h *after) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h *after) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if do := h.do.Swap(nil); do != nil {
			(*do)()
		}
		return err
	}
}
