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

// WishlistAppend queues a script on a pipeline for Exec: append an entry to the Redis copy of a
// wishlist and set the version from before to after. The reply is 1 if the copy contains the entry;
// 0 if the copy or the session is missing, or the copy is older than before: then replace the copy.
func WishlistAppend(ctx context.Context, pipe redis.Pipeliner, session, list, before, after, entry string, ttl time.Duration) *redis.Cmd {
	return wishlistAppend().EvalSha(ctx, pipe, []string{session, list}, before, after, entry, ttl.Milliseconds())
}

// WishlistReplace queues a script on a pipeline for Exec: replace the Redis copy of a wishlist. The
// reply is 1, or 0 if the copy is newer or the session is missing.
func WishlistReplace(ctx context.Context, pipe redis.Pipeliner, session, list, version string, ttl time.Duration, entries ...string) *redis.Cmd {
	args := make([]any, 0, 2+len(entries))
	args = append(args, version, ttl.Milliseconds())
	for _, e := range entries {
		args = append(args, e)
	}
	return wishlistReplace().EvalSha(ctx, pipe, []string{session, list}, args...)
}
