package session

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
)

// searchSessions returns the running search sessions of a guest with all their fields in Redis,
// sorted by key. The cost is a Redis round trip with the timeouts of WithLongTimeout; the error is
// that of Redis.
func (h *Handlers) searchSessions(ctx context.Context, g *loadedGuest) (list []map[string]any, err error) {
	keys := h.sessions.SearchKeys(g.Session, g.lists)
	slices.Sort(keys)
	keys = slices.Compact(keys)
	pipe := redisclient.WithLongTimeout(h.rdb).Pipeline()
	reads := make([]*redis.MapStringStringCmd, len(keys))
	for i, key := range keys {
		reads[i] = pipe.HGetAll(ctx, key)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	for i, key := range keys {
		fields := reads[i].Val()
		if len(fields) == 0 {
			continue
		}
		search := map[string]any{"searchSessionId": key[strings.LastIndexByte(key, ':')+1:]}
		for field, value := range fields {
			search[field] = decodeField(field, value)
		}
		list = append(list, search)
	}
	return list, nil
}

// decodeField converts a field of a search session from its form in Redis to JSON: times to RFC
// 3339 in UTC, the query to an object, the count to a number. Other fields and malformed values
// stay strings.
func decodeField(field, value string) any {
	switch field {
	case "startedAt", "lastInteractionAt", "ttlExpiresAt":
		if millis, err := strconv.ParseInt(value, 10, 64); err == nil {
			return timestamp.Format(time.UnixMilli(millis))
		}
	case "query", "resultCount":
		if v := jsontext.Value(value); v.IsValid() {
			return v
		}
	}
	return value
}
