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

// TagKeys are the three keys of one tag, in one slot.
type TagKeys struct{ Entries, Busted, Busting string }

// Register queues a note that entry carries the tag until the time kept, for a pipeline that Exec runs. The command's
// Int64 is the server's time of the tag's last invalidation in µs, 0 when there was none lately.
func Register(ctx context.Context, pipe redis.Pipeliner, tag TagKeys, entry string, now, kept time.Time) *redis.Cmd {
	return register.EvalSha(ctx, pipe, []string{tag.Entries, tag.Busted},
		entry, kept.UnixMilli(), now.UnixMilli(), kept.Sub(now).Milliseconds())
}

// Detached is a queued Detach.
type Detached struct{ cmd *redis.Cmd }

// Detach queues the beginning of a tag's invalidation, for a pipeline that Exec runs. The time of it is remembered for
// note, the entries until they are said to be deleted, or for rest.
func Detach(ctx context.Context, pipe redis.Pipeliner, tag TagKeys, note, rest time.Duration) Detached {
	return Detached{detach.EvalSha(ctx, pipe, []string{tag.Entries, tag.Busted, tag.Busting},
		note.Milliseconds(), rest.Milliseconds())}
}

// Result is the server's time of the invalidation, µs, and the keys of the entries to be deleted.
func (d Detached) Result() (at int64, entries []string, err error) {
	reply, err := d.cmd.Slice()
	if err != nil {
		return 0, nil, err
	}
	for _, key := range reply[1:] {
		entries = append(entries, key.(string))
	}
	return reply[0].(int64), entries, nil
}
