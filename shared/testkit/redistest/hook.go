package redistest

import (
	"context"
	"net"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// AfterNextPipeline calls do once, after the reply to the next pipeline of c and before the
// pipeline's caller continues, that is, between two round trips of a request. Pipelines that do
// itself sends through c do not call do again.
func AfterNextPipeline(c redis.UniversalClient, do func()) {
	h := &afterPipelineHook{}
	h.callback.Store(&do)
	c.AddHook(h)
}

type afterPipelineHook struct{ callback atomic.Pointer[func()] }

func (h *afterPipelineHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h *afterPipelineHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (h *afterPipelineHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if do := h.callback.Swap(nil); do != nil {
			(*do)()
		}
		return err
	}
}
