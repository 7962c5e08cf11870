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
// wishlist and set the version from before to after. before and after are decimal numbers; before
// is "0" for a new list. The reply is 1 if the copy contains the entry, also for a repeated call;
// 0, and nothing written, if the session is missing, or if the copy is older than before (a missing
// copy has the version 0): then replace the copy. The list lives for ttl; the TTL of the session
// stays.
func WishlistAppend(ctx context.Context, pipe redis.Pipeliner, session, list, before, after, entry string, ttl time.Duration) *redis.Cmd {
	return wishlistAppend().EvalSha(ctx, pipe, []string{session, list}, before, after, entry, ttl.Milliseconds())
}

// WishlistReplace queues a script on a pipeline for Exec: replace the Redis copy of a wishlist. The
// reply is 1, or 0, and nothing written, if the copy is newer or the session is missing. version is
// a decimal number. Without entries the list is deleted and only the version stays. The list lives
// for ttl; the TTL of the session stays. A repeated call does no harm.
func WishlistReplace(ctx context.Context, pipe redis.Pipeliner, session, list, version string, ttl time.Duration, entries ...string) *redis.Cmd {
	args := make([]any, 0, 2+len(entries))
	args = append(args, version, ttl.Milliseconds())
	for _, e := range entries {
		args = append(args, e)
	}
	return wishlistReplace().EvalSha(ctx, pipe, []string{session, list}, args...)
}
