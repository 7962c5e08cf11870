package session

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
)

// clearedTTL is the life of the marker of a cleared session. The marker stops the writes of earlier
// requests, of at most 2.5 s each.
const clearedTTL = 10 * time.Minute

func (st *Store) clearedKey(id string) string { return st.keys.SessionPart(id, "cleared") }

// Purge deletes a session from Redis, in four round trips, or three without search sessions,
// bounded by the context and the timeouts of the client:
//
//  1. read the ids of the search sessions,
//  2. delete the search sessions,
//  3. set the marker of a cleared session, for 10 minutes, and delete hash, lists and challenge,
//  4. delete the last-seen time.
//
// Purge returns the first error of Redis; the later steps have not run then. The caller may repeat
// Purge at any time: no step deletes an id needed by a later step. Purge changes nothing in
// Postgres, and leaves idempotent answers and buffered events to package erasure.
//
// After Purge, a request still running writes nothing of the session but a search session and the
// last-seen time. No guest refers to such a search session, and it expires within its hour;
// guest.Finish deletes the time again.
func (st *Store) Purge(ctx context.Context, rdb redis.UniversalClient, id string) error {
	st.preferenceCache.Remove(id)
	pipe := rdb.Pipeline()
	running := pipe.HGet(ctx, st.keys.Session(id), "activeSearches")
	lists := st.EnqueueLists(ctx, pipe, id)
	if err := lua.Exec(ctx, pipe); err != nil {
		return fmt.Errorf("session: purge: %w", err)
	}
	searches := rdb.Pipeline() // before the hash and the history, which lead to the search sessions
	for _, key := range st.SearchKeys(&Session{ID: id, searches: parseSearches(running.Val())}, lists) {
		searches.Del(ctx, key)
	}
	if _, err := searches.Exec(ctx); err != nil {
		return fmt.Errorf("session: purge: %w", err)
	}
	pipe = rdb.TxPipeline()
	pipe.Set(ctx, st.clearedKey(id), 1, clearedTTL)
	pipe.Del(ctx, st.keys.Session(id), st.keys.SessionPart(id, "wishlist"),
		st.keys.SessionPart(id, "recent"), st.keys.SessionPart(id, "history"), st.keys.SessionPart(id, "challenge"))
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("session: purge: %w", err)
	}
	// The time goes after the marker: before, a running request would write the time again.
	if err := st.RemoveLastSeen(ctx, rdb, id); err != nil {
		return fmt.Errorf("session: purge: %w", err)
	}
	return nil
}

// SearchKeys returns the Redis keys of the search sessions in a session's hash and history,
// possibly with duplicates, or nil without any. lists may be nil; lists of another session, and
// history entries that cannot be read, are skipped. CPU only, after the pipeline of EnqueueLists.
func (st *Store) SearchKeys(s *Session, lists *Lists) []string {
	var keys []string
	for _, a := range s.searches {
		keys = append(keys, st.searchKey(a.id))
	}
	for _, entry := range lists.History(s) {
		var h struct {
			ID string `json:"searchSessionId"`
		}
		if err := json.Unmarshal(entry, &h); err == nil && h.ID != "" {
			keys = append(keys, st.searchKey(h.ID))
		}
	}
	return keys
}
