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

const maxConcurrent = 16 // upstream calls for one response

// gather fetches the values of ids. It prefetches all cache entries in 1 round trip, then calls
// fetch for every id, up to maxConcurrent at a time, and waits for all calls. An id with a nil
// value or an error is absent from found; err is the error of any id.
func gather[T any](ctx context.Context, f *Fetcher, ids []string, key func(id string) string,
	fetch func(ctx context.Context, id string, prefetched *cache.Pending) (*T, error),
) (found map[string]*T, err error) {
	pipe := f.rdb.Pipeline()
	prefetched := make([]*cache.Pending, len(ids))
	for i, id := range ids {
		prefetched[i] = f.cache.Enqueue(ctx, pipe, key(id))
	}
	pipe.Exec(ctx) // a failed command is a miss

	found = make(map[string]*T, len(ids))
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(maxConcurrent)
	for i, id := range ids {
		group.Go(func() error {
			value, fetchErr := fetch(ctx, id, prefetched[i])
			mu.Lock()
			defer mu.Unlock()
			if fetchErr != nil {
				err = fetchErr
			} else if value != nil {
				found[id] = value
			}
			return nil
		})
	}
	group.Wait()
	return found, err
}

// encodeEntry returns a cache entry with v as JSON.
func encodeEntry(v any, tags ...string) (cache.Loaded, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return cache.Loaded{}, fmt.Errorf("compose: encode: %w", err)
	}
	entry, err := cache.NewEntry(http.StatusOK, body, nil, nil)
	return cache.Loaded{Entry: entry, Tags: tags}, err
}

// notFoundEntry returns a negative cache entry, which is kept for negativeTTL.
func notFoundEntry(tags ...string) (cache.Loaded, error) {
	entry, err := cache.NewEntry(http.StatusNotFound, nil, nil, nil)
	return cache.Loaded{Entry: entry, TTL: negativeTTL, Tags: tags}, err
}

// decodeEntry decodes an entry of encodeEntry.
func decodeEntry(e *cache.Entry, into any) error {
	body, err := e.Body()
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}
