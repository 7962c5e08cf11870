package session

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// Lanes are the last characters a session's id may have, Crockford's alphabet: equal parts of all sessions.
const Lanes = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

func lane(id string) string { return id[len(id)-1:] }

// noteSeen writes down when the session was last here, for the sweep that ends those gone quiet. It says no more than
// the id: the time in it is that of the session's beginning. A session that was cleared meanwhile is noted too: who
// learns of that takes it back.
func (r *Room) noteSeen(ctx context.Context, pipe redis.Pipeliner, s *Session) {
	pipe.ZAddArgs(ctx, r.keys.Seen(lane(s.ID)), redis.ZAddArgs{
		GT:      true, // of two visits at once the later one counts
		Members: []redis.Z{{Score: float64(s.LastSeenAt.UnixMilli()), Member: s.ID}},
	})
}

// Unsee forgets when a session was last seen.
func (r *Room) Unsee(ctx context.Context, rdb redis.Cmdable, id string) *redis.IntCmd {
	return rdb.ZRem(ctx, r.keys.Seen(lane(id)), id)
}
