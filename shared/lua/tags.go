package lua

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	register = load("register.lua")
	detach   = load("detach.lua")
)

// TagKeys are the three keys of a tag, in one slot: the entries with the tag, the time of the last
// invalidation, and the detached entries not yet deleted.
type TagKeys struct{ Entries, InvalidatedAt, Pending string }

// Register queues a script on a pipeline for Exec: add entry to the tag until the time expires, and
// remove expired entries from the tag. An entry in the tag keeps the later of two expiries. The
// Int64 of the command is the server time of the tag's last invalidation in µs, or 0 without a
// recent invalidation; the entry is added in both cases. now is the caller's clock, and expires
// must be later.
func Register(ctx context.Context, pipe redis.Pipeliner, tag TagKeys, entry string, now, expires time.Time) *redis.Cmd {
	return register().EvalSha(ctx, pipe, []string{tag.Entries, tag.InvalidatedAt},
		entry, expires.UnixMilli(), now.UnixMilli(), expires.Sub(now).Milliseconds())
}

// DetachCmd is a queued Detach.
type DetachCmd struct{ cmd *redis.Cmd }

// Detach queues a script on a pipeline: begin or continue the invalidation of a tag. Run the
// pipeline with Exec of this package: after pipe.Exec an unknown script is the error NOSCRIPT of
// Result. The script stores the time of the invalidation for invalidationTTL and moves up to
// maxEntries entries to the pending set, which lives for pendingTTL. An unfinished batch of an
// earlier call is returned first, and whole; then no further entries move. After Exec, call Result.
// A repeated or concurrent Detach within pendingTTL loses no entry: it returns the pending batch
// again. maxEntries must be at least 1 and at most 3,000, and bounds the time for which Redis
// serves no other client.
func Detach(ctx context.Context, pipe redis.Pipeliner, tag TagKeys, invalidationTTL, pendingTTL time.Duration, maxEntries int) DetachCmd {
	return DetachCmd{detach().EvalSha(ctx, pipe, []string{tag.Entries, tag.InvalidatedAt, tag.Pending},
		invalidationTTL.Milliseconds(), pendingTTL.Milliseconds(), maxEntries)}
}

// DetachResult is the reply to Detach.
type DetachResult struct {
	// ServerTime is the score of this batch in the pending set, µs. After deleting the entries,
	// remove all members up to this score.
	ServerTime int64
	More       bool     // more entries remain; call Detach again
	Entries    []string // the keys to delete
}

// Result returns the batch after Exec, without Entries if the tag has no entry, or the zero
// DetachResult and the error of the command. Before Exec it returns an error too. CPU only.
func (d DetachCmd) Result() (DetachResult, error) {
	reply, err := d.cmd.Slice()
	if err != nil {
		return DetachResult{}, err
	}
	r := DetachResult{ServerTime: reply[0].(int64), More: reply[1] == int64(1)}
	for _, key := range reply[2:] {
		r.Entries = append(r.Entries, key.(string))
	}
	return r, nil
}
