package lua

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var setUnlessCleared = load("set_unless_cleared.lua")

// SetUnlessCleared queues something to keep of a session for a while, for a pipeline that Exec runs. The reply is 0 when the
// session was cleared: then nothing is written.
func SetUnlessCleared(ctx context.Context, pipe redis.Pipeliner, key, cleared, value string, life time.Duration) *redis.Cmd {
	return setUnlessCleared().EvalSha(ctx, pipe, []string{key, cleared}, value, life.Milliseconds())
}
