package lua

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var setUnlessCleared = load("set_unless_cleared.lua")

// SetUnlessCleared queues a script on a pipeline for Exec: set a key of a session with a TTL,
// whatever the key held. cleared is the marker of a cleared session, in the same slot. The reply is
// 1, or 0 for a cleared session; then the script writes nothing. A ttl below 1 ms is an error
// reply.
func SetUnlessCleared(ctx context.Context, pipe redis.Pipeliner, key, cleared, value string, ttl time.Duration) *redis.Cmd {
	return setUnlessCleared().EvalSha(ctx, pipe, []string{key, cleared}, value, ttl.Milliseconds())
}
