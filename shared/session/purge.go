package session

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
)

// clearedTTL is how long the marker of a cleared session stops the writes of requests that began
// before it. A request takes 2.5 s at most.
const clearedTTL = 10 * time.Minute

func (r *Store) clearedKey(id string) string { return r.keys.SessionPart(id, "cleared") }

// Purge deletes everything that Redis has of a session, in four round trips: read the ids of its
// search sessions, delete them, delete the rest and set the marker of a cleared session, delete the
// record of when it was last seen. The context bounds them. Purge returns the first error of Redis;
// the caller may call it again, and a failed Purge loses no id that the next one needs. Requests of
// the session that still run write nothing after it, with one exception: a search session, which no
// guest's session refers to and which expires with its hour.
func (r *Store) Purge(ctx context.Context, rdb redis.UniversalClient, id string) error {
	r.preferenceCache.Remove(id)
	pipe := rdb.Pipeline()
	running := pipe.HGet(ctx, r.keys.Session(id), "activeSearches")
	lists := r.EnqueueLists(ctx, pipe, id)
	if err := lua.Exec(ctx, pipe); err != nil {
		return fmt.Errorf("session: purge: %w", err)
	}
	searches := rdb.Pipeline() // before the rest, which a repeated Purge needs to find the search sessions
	for _, key := range r.SearchKeys(&Session{ID: id, searches: parseSearches(running.Val())}, lists) {
		searches.Del(ctx, key)
	}
	if _, err := searches.Exec(ctx); err != nil {
		return fmt.Errorf("session: purge: %w", err)
	}
	pipe = rdb.TxPipeline()
	pipe.Set(ctx, r.clearedKey(id), 1, clearedTTL)
	pipe.Del(ctx, r.keys.Session(id), r.keys.SessionPart(id, "wishlist"),
		r.keys.SessionPart(id, "recent"), r.keys.SessionPart(id, "history"), r.keys.SessionPart(id, "challenge"))
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("session: purge: %w", err)
	}
	if err := r.RemoveLastSeen(ctx, rdb, id); err != nil { // last: until the marker is set, a running request records it again
		return fmt.Errorf("session: purge: %w", err)
	}
	return nil
}

// SearchKeys returns the Redis keys of the search sessions that a session's hash and history refer
// to, possibly with duplicates. lists may be nil.
func (r *Store) SearchKeys(s *Session, lists *Lists) []string {
	var keys []string
	for _, a := range s.searches {
		keys = append(keys, r.searchKey(a.id))
	}
	for _, entry := range lists.History(s) {
		var h struct {
			ID string `json:"searchSessionId"`
		}
		if err := json.Unmarshal(entry, &h); err == nil && h.ID != "" {
			keys = append(keys, r.searchKey(h.ID))
		}
	}
	return keys
}
