package redisclient

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// preconnector dials connections in advance. While Redis is slow, a pipeline that dials waits
// twice, for the handshake and for the replies; after a timeout the pipeline closes the connection,
// and the next pipeline would have to dial again.
type preconnector struct {
	client   *redis.Client
	dialling atomic.Bool
}

// ensureIdle starts a dial with handshake in the background if the pool has no idle connection and
// no such dial is in progress. It returns at once; a failure has no effect.
func (p *preconnector) ensureIdle() {
	if p.client.PoolStats().IdleConns > 0 || !p.dialling.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer p.dialling.Store(false)
		// the reply does not matter; the breaker ignores handshake commands
		p.client.ClientID(context.Background())
	}()
}
