package session

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
)

// clearedTTL is how long a cleared session's mark keeps requests that began before from writing: they take 2.5 s at
// most.
const clearedTTL = 10 * time.Minute

func (r *Store) clearedKey(id string) string { return r.keys.SessionPart(id, "cleared") }

// Purge deletes all that Redis keeps of a session, in four round trips: one finds its search sessions, one is for them,
// one for the rest and one for when it was last seen. It may be repeated. Requests for the session that still run write
// nothing behind it but, for the rest of its hour, a search session that no guest leads to.
func (r *Store) Purge(ctx context.Context, rdb redis.UniversalClient, id string) error {
	r.preferenceCache.Remove(id)
	pipe := rdb.Pipeline()
	running := pipe.HGet(ctx, r.keys.Session(id), "activeSearches")
	lists := r.EnqueueLists(ctx, pipe, id)
	if err := lua.Exec(ctx, pipe); err != nil {
		return fmt.Errorf("session: purge: %w", err)
	}
	searches := rdb.Pipeline() // first, because the rest leads to them when this is repeated
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
	if err := r.RemoveLastSeen(ctx, rdb, id); err != nil { // last, because a request that still runs notes it until the mark is there
		return fmt.Errorf("session: purge: %w", err)
	}
	return nil
}

// SearchKeys are the Redis keys of the search sessions that a session's hash and history lead to.
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
