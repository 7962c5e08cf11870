package session

import (
	"context"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
)

const maxViewed = 50 // properties the list of what was viewed keeps, newest first

// Viewed is DOMAIN_MODEL's RecentlyViewedEntry.
type Viewed struct {
	PropertyID string `json:"propertyId"`
	TenantID   string `json:"tenantId,omitzero"` // as the client named it; no authority
	ViewedAt   string `json:"viewedAt"`
	Source     string `json:"source"` // search-list, search-map, detail-link or wishlist
}

// PushViewed puts properties the guest looked at, oldest first, in front of the list, on the caller's pipeline. Each is
// in it once.
func (r *Room) PushViewed(ctx context.Context, pipe redis.Pipeliner, s *Session, viewed ...Viewed) {
	if len(viewed) == 0 {
		return
	}
	entries := make([]lua.Viewed, len(viewed))
	for i, v := range viewed {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err) // unreachable: strings that were checked
		}
		entries[i] = lua.Viewed{ID: v.PropertyID, Entry: string(text)}
	}
	lua.PushViewed(ctx, pipe, r.keys.SessionPart(s.ID, "recent"), r.cleared(s.ID), TTL, maxViewed, entries...)
}

// Lists are the lists beside a session's hash. They are empty for another session than the one they were read for, and
// when Redis did not answer.
type Lists struct {
	of   string
	read map[string]*redis.StringSliceCmd
}

// PeekLists puts the read of all lists of a session on the caller's pipeline.
func (r *Room) PeekLists(ctx context.Context, pipe redis.Pipeliner, id string) *Lists {
	l := &Lists{id, map[string]*redis.StringSliceCmd{}}
	for _, part := range []string{"recent", "history", "wishlist"} {
		l.read[part] = pipe.LRange(ctx, r.keys.SessionPart(id, part), 0, -1)
	}
	return l
}

// Recent is what the guest looked at, newest first, as it is kept.
func (l *Lists) Recent(s *Session) []jsontext.Value { return l.entries(s, "recent") }

// History is what the guest searched, newest first, as it is kept.
func (l *Lists) History(s *Session) []jsontext.Value { return l.entries(s, "history") }

// Wishlist is the copy of the wishlist as it is kept, oldest first; ok says that there is a copy.
func (l *Lists) Wishlist(s *Session) (entries []jsontext.Value, ok bool) {
	if l == nil || l.of != s.ID || s.wishlist == "" || l.read["wishlist"].Err() != nil {
		return nil, false
	}
	return l.entries(s, "wishlist"), true
}

func (l *Lists) entries(s *Session, part string) []jsontext.Value {
	if l == nil || l.of != s.ID { // the cookie came from another browser: what is another's is not shown
		return nil
	}
	var list []jsontext.Value
	for _, text := range l.read[part].Val() {
		if v := jsontext.Value(text); v.IsValid() {
			list = append(list, v)
		}
	}
	return list
}

// clearedFor is how long a cleared session's mark keeps requests that began before from writing: they take 2.5 s at most.
const clearedFor = 10 * time.Minute

func (r *Room) cleared(id string) string { return r.keys.SessionPart(id, "cleared") }

// Purge deletes all that Redis keeps of a session, in one round trip for it and one for its search sessions. It may be
// repeated. Requests for the session that still run write nothing behind it but, for the rest of its hour, a search
// session that no guest leads to.
func (r *Room) Purge(ctx context.Context, rdb redis.UniversalClient, s *Session, lists *Lists) error {
	r.hints.Remove(s.ID)
	searches := rdb.Pipeline() // first, because the rest leads to them when this is repeated
	for _, key := range r.SearchKeys(s, lists) {
		searches.Del(ctx, key)
	}
	if _, err := searches.Exec(ctx); err != nil {
		return fmt.Errorf("session: purge: %w", err)
	}
	pipe := rdb.TxPipeline()
	pipe.Set(ctx, r.cleared(s.ID), 1, clearedFor)
	pipe.Del(ctx, r.keys.Session(s.ID), r.keys.SessionPart(s.ID, "wishlist"),
		r.keys.SessionPart(s.ID, "recent"), r.keys.SessionPart(s.ID, "history"))
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("session: purge: %w", err)
	}
	return nil
}

// SearchKeys are the Redis keys of the search sessions that a session's hash and history lead to.
func (r *Room) SearchKeys(s *Session, lists *Lists) []string {
	var keys []string
	for _, a := range s.searches {
		keys = append(keys, r.keys.Key("srs", a.id))
	}
	for _, entry := range lists.History(s) {
		var h struct {
			ID string `json:"searchSessionId"`
		}
		if err := json.Unmarshal(entry, &h); err == nil && h.ID != "" {
			keys = append(keys, r.keys.Key("srs", h.ID))
		}
	}
	return keys
}
