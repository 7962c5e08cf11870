package lua

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	wishlistAppend  = load("wishlist_append.lua")
	wishlistReplace = load("wishlist_replace.lua")
)

// WishlistAppend queues one entry for the end of a wishlist's copy. The answer is 0 when the copy was older than the
// version before, or there was none, and it must be replaced.
func WishlistAppend(ctx context.Context, pipe redis.Pipeliner, session, list, before, now, entry string, life time.Duration) *redis.Cmd {
	return wishlistAppend().EvalSha(ctx, pipe, []string{session, list}, before, now, entry, life.Milliseconds())
}

// WishlistReplace queues a whole wishlist as the copy. The answer is 0 when a newer one stands.
func WishlistReplace(ctx context.Context, pipe redis.Pipeliner, session, list, version string, life time.Duration, entries ...string) *redis.Cmd {
	args := make([]any, 0, 2+len(entries))
	args = append(args, version, life.Milliseconds())
	for _, e := range entries {
		args = append(args, e)
	}
	return wishlistReplace().EvalSha(ctx, pipe, []string{session, list}, args...)
}
