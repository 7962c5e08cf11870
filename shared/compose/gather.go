package compose

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json"
	"golang.org/x/sync/errgroup"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
)

const maxConcurrent = 16 // calls to an upstream for one answer

// gather asks for each id: all cache entries in one round trip, then one for each, at most atOnce side by side. An id
// for which one returns nil or an error is absent; err is that of any of them.
func gather[T any](ctx context.Context, p *Fetcher, ids []string, key func(id string) string,
	one func(ctx context.Context, id string, seen *cache.Pending) (*T, error),
) (found map[string]*T, err error) {
	pipe := p.rdb.Pipeline()
	seen := make([]*cache.Pending, len(ids))
	for i, id := range ids {
		seen[i] = p.cache.Enqueue(ctx, pipe, key(id))
	}
	pipe.Exec(ctx) // a command that failed is a miss

	found = make(map[string]*T, len(ids))
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(maxConcurrent)
	for i, id := range ids {
		group.Go(func() error {
			value, failed := one(ctx, id, seen[i])
			mu.Lock()
			defer mu.Unlock()
			if failed != nil {
				err = failed
			} else if value != nil {
				found[id] = value
			}
			return nil
		})
	}
	group.Wait()
	return found, err
}

// encodeEntry makes a cache entry of what an upstream answered.
func encodeEntry(v any, tags ...string) (cache.Loaded, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return cache.Loaded{}, fmt.Errorf("compose: encode: %w", err)
	}
	entry, err := cache.NewEntry(http.StatusOK, body, nil, nil)
	return cache.Loaded{Entry: entry, Tags: tags}, err
}

// notFoundEntry makes a cache entry of the answer that there is no such thing.
func notFoundEntry(tags ...string) (cache.Loaded, error) {
	entry, err := cache.NewEntry(http.StatusNotFound, nil, nil, nil)
	return cache.Loaded{Entry: entry, TTL: negativeTTL, Tags: tags}, err
}

// decodeEntry is the inverse of pack.
func decodeEntry(e *cache.Entry, into any) error {
	body, err := e.Body()
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}
