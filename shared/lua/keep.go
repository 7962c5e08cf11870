package lua

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var keep = load("keep.lua")

// Keep queues an answer for the place of the claim under which it was worked out, for a pipeline that Exec runs. The
// reply is 0 when the claim was lost: then nothing is written.
func Keep(ctx context.Context, pipe redis.Pipeliner, key, claim, answer string, life time.Duration) *redis.Cmd {
	return keep().EvalSha(ctx, pipe, []string{key}, claim, answer, life.Milliseconds())
}
