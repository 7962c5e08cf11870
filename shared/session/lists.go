package session

import (
	"context"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
)

const maxViewed = 50 // entries of the list "recent", newest first

// ViewedProperty is an entry of the list "recent", the viewed properties
// (docs/spec/data-model.md#guest-session).
type ViewedProperty struct {
	PropertyID string `json:"propertyId"`
	TenantID   string `json:"tenantId,omitzero"` // as the client claims; not verified
	ViewedAt   string `json:"viewedAt"`
	Source     string `json:"source"` // search-list, search-map, detail-link or wishlist
}

// EnqueueViewed queues a script on the caller's pipeline to put viewed properties on the list
// "recent"; the caller runs the pipeline with lua.Exec. The list holds at most 50 properties, each
// once, ordered by the latest view whatever the order of reports, and expires after 30 days. A
// session cleared in the last 10 minutes gets no list. EnqueueViewed queues nothing without viewed
// properties and while the guest's consent is unknown, also for a degraded session. It sends
// nothing; without Redis the views are lost. It panics for text that is not UTF-8.
func (st *Store) EnqueueViewed(ctx context.Context, pipe redis.Pipeliner, s *Session, viewed ...ViewedProperty) {
	if len(viewed) == 0 || !s.ConsentKnown() { // the guest may have opted out
		return
	}
	entries := make([]lua.ViewedEntry, len(viewed))
	for i, v := range viewed {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err) // unreachable: the request was validated, so the strings are UTF-8
		}
		entries[i] = lua.ViewedEntry{ID: v.PropertyID, Entry: string(text)}
	}
	lua.PushViewed(ctx, pipe, st.keys.SessionPart(s.ID, "recent"), st.clearedKey(s.ID), TTL, maxViewed, entries...)
}

// Lists are the lists beside a session's hash. A nil *Lists is empty. Every method returns an empty
// list for a session other than the session read by EnqueueLists, and without an answer of Redis.
type Lists struct {
	sessionID string
	commands  map[string]*redis.StringSliceCmd
}

// EnqueueLists queues the reads of the three lists of a session on the caller's pipeline, whole:
// the viewed properties (at most 50), the past searches (at most 25) and the copy of the wishlist
// (at most 100), LRANGE thrice. It sends nothing and never returns nil. Read the lists after the
// pipeline ran. The copy of the wishlist counts only if the session's hash has a wishlistVersion.
func (st *Store) EnqueueLists(ctx context.Context, pipe redis.Pipeliner, id string) *Lists {
	l := &Lists{id, map[string]*redis.StringSliceCmd{}}
	for _, part := range []string{"recent", "history", "wishlist"} {
		l.commands[part] = pipe.LRange(ctx, st.keys.SessionPart(id, part), 0, -1)
	}
	return l
}

// RecentlyViewed returns the viewed properties, newest first, as stored. It skips entries that are
// not JSON, and returns nil for an empty list, another session, or without an answer of Redis. CPU
// only.
func (l *Lists) RecentlyViewed(s *Session) []jsontext.Value { return l.entries(s, "recent") }

// History returns the searches, newest first, as stored, and nil as RecentlyViewed does. CPU only.
func (l *Lists) History(s *Session) []jsontext.Value { return l.entries(s, "history") }

// Wishlist returns the copy of the wishlist, oldest first, as stored, without entries that are not
// JSON. It returns nil and false if there is no copy (s has no wishlistVersion), Redis did not
// answer, or EnqueueLists read another session. An empty copy is nil and true. The copy may be
// outdated. CPU only.
func (l *Lists) Wishlist(s *Session) (entries []jsontext.Value, ok bool) {
	if l == nil || l.sessionID != s.ID || s.wishlistVersion == "" || l.commands["wishlist"].Err() != nil {
		return nil, false
	}
	return l.entries(s, "wishlist"), true
}

// entries returns the valid JSON entries of a list.
func (l *Lists) entries(s *Session, part string) []jsontext.Value {
	// With the cookie of another browser, s must not see the lists of the cookie's session.
	if l == nil || l.sessionID != s.ID {
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
