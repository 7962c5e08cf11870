package lua

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var compareAndSwap = load("compare_and_swap.lua")

// CompareAndSwap queues a script on a pipeline for Exec: replace claim, the value under key, with
// response for ttl. The reply is 1, or 0 if key no longer holds claim, for example after expiry or
// after an earlier success; then the script writes nothing. A key of another type is an error
// reply.
func CompareAndSwap(ctx context.Context, pipe redis.Pipeliner, key, claim, response string, ttl time.Duration) *redis.Cmd {
	return compareAndSwap().EvalSha(ctx, pipe, []string{key}, claim, response, ttl.Milliseconds())
}
