package session

import (
	"context"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
)

const maxHistory = 25 // searches a guest's history keeps, newest first

// HistoryEntry is one line of the guest's search history (DOMAIN_MODEL §2.1), pushed when a search
// session begins.
type HistoryEntry struct {
	SearchSessionID string         `json:"searchSessionId"`
	QueryHash       string         `json:"queryHash"` // sha256:<hex>
	Geo             any            `json:"geo"`
	Dates           stay.Dates     `json:"dates"`
	Occupancy       stay.Occupancy `json:"occupancy"`
	ExecutedAt      string         `json:"executedAt"`
}

func (h *HistoryEntry) json() string {
	if h == nil {
		return ""
	}
	b, err := json.Marshal(h)
	if err != nil {
		panic(err) // unreachable: every part came from JSON
	}
	return string(b)
}

// Search is DOMAIN_MODEL §2.2: what one running search session looks for.
type Search struct {
	ID             string // srs_<ulid>; its time is when the session began, and it ends one hour later
	GuestSessionID string
	QueryHash      string
	Query          jsontext.Value // the normalised query: geo, dates, occupancy, filters, sort key
	Locale         string
	Currency       string
	ResultCount    int
}

// SaveSearch puts a search session on the caller's pipeline: all of it when it is fresh, else the
// interaction alone. The key ends with the hour, whatever is written to it.
func (r *Room) SaveSearch(ctx context.Context, pipe redis.Pipeliner, s Search, fresh bool) {
	key := r.keys.Key("srs", s.ID)
	now := formatMillis(r.now())
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
