package lua

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var compareAndSwap = load("compare_and_swap.lua")

// CompareAndSwap queues an answer for the place of the claim under which it was worked out, for a pipeline that Exec runs. The
// reply is 0 when the claim was lost: then nothing is written.
func CompareAndSwap(ctx context.Context, pipe redis.Pipeliner, key, claim, answer string, life time.Duration) *redis.Cmd {
	return compareAndSwap().EvalSha(ctx, pipe, []string{key}, claim, answer, life.Milliseconds())
}
