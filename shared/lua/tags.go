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
type TagKeys struct{ Entries, InvalidatedAt, Pending string }

// Register queues a note that entry carries the tag until the time kept, for a pipeline that Exec runs. The command's
// Int64 is the server's time of the tag's last invalidation in µs, 0 when there was none lately.
func Register(ctx context.Context, pipe redis.Pipeliner, tag TagKeys, entry string, now, kept time.Time) *redis.Cmd {
	return register().EvalSha(ctx, pipe, []string{tag.Entries, tag.InvalidatedAt},
		entry, kept.UnixMilli(), now.UnixMilli(), kept.Sub(now).Milliseconds())
}

// DetachCmd is a queued Detach.
type DetachCmd struct{ cmd *redis.Cmd }

// Detach queues the beginning of a tag's invalidation, or the next step of it, for a pipeline that Exec runs. The time of it
// is remembered for note, the entries until they are said to be deleted, or for rest. It takes at most some of them; a
// step that another left unfinished is taken whole.
func Detach(ctx context.Context, pipe redis.Pipeliner, tag TagKeys, note, rest time.Duration, some int) DetachCmd {
	return DetachCmd{detach().EvalSha(ctx, pipe, []string{tag.Entries, tag.InvalidatedAt, tag.Pending},
		note.Milliseconds(), rest.Milliseconds(), some)}
}

// DetachResult is the answer to Detach.
type DetachResult struct {
	ServerTime int64    // server's time of the step, µs: under it and before are the entries that may be forgotten once they are deleted
	More       bool     // another step is needed
	Entries    []string // the keys to be deleted
}

// Result is the answer, once the pipeline has run.
func (d DetachCmd) Result() (DetachResult, error) {
	reply, err := d.cmd.Slice()
	if err != nil {
		return DetachResult{}, err
	}
	t := DetachResult{ServerTime: reply[0].(int64), More: reply[1] == int64(1)}
	for _, key := range reply[2:] {
		t.Entries = append(t.Entries, key.(string))
	}
	return t, nil
}
