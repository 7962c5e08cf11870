package redisclient

import (
	"context"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// preconnector makes connections before they are needed. While Redis is slow, a pipeline that dials waits twice, for the greeting
// and for its answers; out of time it closes the connection, and the next one would have to dial again.
type preconnector struct {
	client   *redis.Client
	dialling atomic.Bool
}

// ensureIdle returns at once, and sees to it that a connection is idle soon, greeting included. One is made at a time.
func (s *preconnector) ensureIdle() {
	if s.client.PoolStats().IdleConns > 0 || !s.dialling.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer s.dialling.Store(false)
		s.client.ClientID(context.Background()) // any answer will do; like the greeting it says nothing to the breaker
	}()
}
