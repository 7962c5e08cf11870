package session

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
)

const maxViewed = 50 // properties the list of what was viewed keeps, newest first

// ViewedProperty is an entry of the list "recent" (docs/spec/data-model.md#guest-session).
type ViewedProperty struct {
	PropertyID string `json:"propertyId"`
	TenantID   string `json:"tenantId,omitzero"` // as the client named it; no authority
	ViewedAt   string `json:"viewedAt"`
	Source     string `json:"source"` // search-list, search-map, detail-link or wishlist
}

// EnqueueViewed puts properties the guest looked at on the list, on the caller's pipeline. Each is in it once, where its
// last view belongs, in whatever order views are reported.
func (r *Store) EnqueueViewed(ctx context.Context, pipe redis.Pipeliner, s *Session, viewed ...ViewedProperty) {
	if len(viewed) == 0 || !s.ConsentKnown() { // who may have refused that is not written down
		return
	}
	entries := make([]lua.ViewedEntry, len(viewed))
	for i, v := range viewed {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err) // unreachable: strings that were checked
		}
		entries[i] = lua.ViewedEntry{ID: v.PropertyID, Entry: string(text)}
	}
	lua.PushViewed(ctx, pipe, r.keys.SessionPart(s.ID, "recent"), r.clearedKey(s.ID), TTL, maxViewed, entries...)
}

// Lists are the lists beside a session's hash. They are empty for another session than the one they were read for, and
// when Redis did not answer.
type Lists struct {
	sessionID string
	commands  map[string]*redis.StringSliceCmd
}

// EnqueueLists puts the read of all lists of a session on the caller's pipeline.
func (r *Store) EnqueueLists(ctx context.Context, pipe redis.Pipeliner, id string) *Lists {
	l := &Lists{id, map[string]*redis.StringSliceCmd{}}
	for _, part := range []string{"recent", "history", "wishlist"} {
		l.commands[part] = pipe.LRange(ctx, r.keys.SessionPart(id, part), 0, -1)
	}
	return l
}

// RecentlyViewed is what the guest looked at, newest first, as it is kept.
func (l *Lists) RecentlyViewed(s *Session) []jsontext.Value { return l.entries(s, "recent") }

// History is what the guest searched, newest first, as it is kept.
func (l *Lists) History(s *Session) []jsontext.Value { return l.entries(s, "history") }

// Wishlist is the copy of the wishlist as it is kept, oldest first; ok says that there is a copy.
func (l *Lists) Wishlist(s *Session) (entries []jsontext.Value, ok bool) {
	if l == nil || l.sessionID != s.ID || s.wishlistVersion == "" || l.commands["wishlist"].Err() != nil {
		return nil, false
	}
	return l.entries(s, "wishlist"), true
}

func (l *Lists) entries(s *Session, part string) []jsontext.Value {
	if l == nil || l.sessionID != s.ID { // the cookie came from another browser: what is another's is not shown
		return nil
	}
	var list []jsontext.Value
	for _, text := range l.commands[part].Val() {
		if v := jsontext.Value(text); v.IsValid() {
			list = append(list, v)
		}
	}
	return list
}
