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

// searchSessions are the search sessions that still run, each with every field that Redis has of it.
func (d *Handlers) searchSessions(ctx context.Context, v *loadedGuest) (list []map[string]any, err error) {
	keys := d.sessions.SearchKeys(v.Session, v.lists)
	slices.Sort(keys)
	keys = slices.Compact(keys)
	pipe := redisclient.WithLongTimeout(d.rdb).Pipeline()
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

// decodeField is a field of a search session as bodies have it, and not as Redis does: a time in UTC, the query as the
// object it is, the count as a number. What is none of that stays as it is held.
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
