package session

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/digest"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
)

const maxHistory = 25 // entries of the list "history", newest first

// HistoryEntry is an entry of the list "history", the past searches
// (docs/spec/data-model.md#guest-session). Each search session adds an entry when it begins.
type HistoryEntry struct {
	SearchSessionID string         `json:"searchSessionId"`
	QueryHash       string         `json:"queryHash"` // sha256:<hex>
	Geo             any            `json:"geo"`
	Dates           stay.Dates     `json:"dates"`
	Occupancy       stay.Occupancy `json:"occupancy"`
	ExecutedAt      string         `json:"executedAt"`
}

// json returns the entry as stored, or "" for nil.
func (h *HistoryEntry) json() string {
	if h == nil {
		return ""
	}
	b, err := json.Marshal(h)
	if err != nil {
		panic(err) // unreachable: every part was decoded from JSON
	}
	return string(b)
}

// SearchSession is docs/spec/data-model.md#search-session: a search of a guest, for one hour.
type SearchSession struct {
	ID             string // srs_<ulid>; the time of the ulid is the start; the end is an hour later
	GuestSessionID string
	QueryHash      string
	Query          jsontext.Value // the normalised query: geo, dates, occupancy, filters, sort key
	Locale         string
	Currency       string
	ResultCount    int
}

// EnqueueSearch queues two commands on the caller's pipeline: HSET with all fields of a fresh
// search session, or else with the time of the interaction alone, and PEXPIREAT. Every write keeps
// the expiry at one hour after the start, the time in s.ID, which must be valid: Redis deletes a
// key with an invalid id at once. If Redis lost a session that is not fresh, the new hash has the
// time of the interaction alone. EnqueueSearch sends nothing and does not check whether the guest
// cleared the session. Without Redis the search session is not stored.
func (st *Store) EnqueueSearch(ctx context.Context, pipe redis.Pipeliner, s SearchSession, fresh bool) {
	key := st.searchKey(s.ID)
	now := formatMillis(st.now())
	fields := []any{"lastInteractionAt", now}
	started := id.Time(s.ID)
	if fresh {
		fields = append(fields, "guestSessionId", s.GuestSessionID, "queryHash", s.QueryHash, "query", string(s.Query),
			"locale", s.Locale, "currency", s.Currency, "resultCount", strconv.Itoa(s.ResultCount),
			"startedAt", formatMillis(started), "ttlExpiresAt", formatMillis(started.Add(searchTTL)))
	}
	pipe.HSet(ctx, key, fields...)
	pipe.PExpireAt(ctx, key, started.Add(searchTTL))
}

const (
	searchTTL        = time.Hour // of a search session; later interactions get a fresh id
	maxSearches      = 5         // of a guest at a time, in parallel tabs; the oldest is dropped
	hashPrefixLength = 16        // hex digits of the query hash; distinguish a guest's searches
)

// activeSearch is a running search session. The time in the id is the start.
type activeSearch struct{ hash, id string }

// ResumeSearch returns the running search session of a query, or a fresh srs_ id if the guest has
// no running search session for the query. Running means started less than an hour ago and among
// the guest's last five queries. queryHash is "sha256:<hex>" with at least 16 digits; a shorter one
// panics. Only s changes, in memory; the caller saves s. A fresh id takes a mutex of the process
// for a moment. Two concurrent requests may both get a fresh id; the later save wins.
func (s *Session) ResumeSearch(queryHash string, now time.Time) (searchID string, fresh bool) {
	hash := digest.Hex(queryHash)[:hashPrefixLength]
	running := s.searches[:0:0]
	for _, a := range s.searches {
		if now.Sub(id.Time(a.id)) >= searchTTL {
			continue
		}
		if a.hash == hash {
			searchID = a.id
			continue
		}
		running = append(running, a)
	}
	moved := len(s.searches) == 0 || s.searches[0].hash != hash || searchID == ""
	if fresh = searchID == ""; fresh {
		searchID = id.New(id.SearchSession, now)
	}
	s.searches = append([]activeSearch{{hash, searchID}}, running...)
	s.searches = s.searches[:min(len(s.searches), maxSearches)]
	if moved {
		s.setField("activeSearches", formatSearches(s.searches))
	}
	return searchID, fresh
}

func formatSearches(list []activeSearch) string {
	var b strings.Builder
	for i, a := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(a.hash)
		b.WriteByte('=')
		b.WriteString(a.id)
	}
	return b.String()
}

func parseSearches(s string) []activeSearch {
	var list []activeSearch
	for part := range strings.SplitSeq(s, ",") {
		hash, searchID, ok := strings.Cut(part, "=")
		if ok && len(hash) == hashPrefixLength && id.Valid(id.SearchSession, searchID) {
			list = append(list, activeSearch{hash, searchID})
		}
	}
	return list
}

func (st *Store) searchKey(searchID string) string { return st.keys.Key("srs", searchID) }
