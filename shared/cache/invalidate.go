package cache

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
)

const (
	invalidationTTL = time.Minute // of the stored time of an invalidation; longer than any load
	// of the entries to delete; longer than an event is redelivered at short intervals
	pendingTTL = time.Hour
	batchSize  = 500 // entries of a tag detached, and entries deleted, per round trip
)

func (c *Cache) tagKeys(tag string) lua.TagKeys {
	return lua.TagKeys{Entries: c.keys.Tag(tag), InvalidatedAt: c.keys.TagInvalidatedAt(tag), Pending: c.keys.TagPending(tag)}
}

// Invalidate deletes every entry with any of the tags and prevents every load in progress from
// storing an entry with any of the tags. It returns the number of deleted entries. After a nil
// error the deleted entries do not come back; only loads that begin later may store new entries.
// After an error or a crash, call Invalidate again with the same tags to finish; a repeated or
// concurrent call does no harm.
//
// Cost: per 500 entries of the largest tag, a round trip to detach and a round trip to forget; for
// all tags together, a round trip per 500 deletions. The first use of the script on a Redis server
// adds 1. Without tags the cost is 0 and the result (0, nil). A batch of 500 blocks Redis for a
// moment only. Invalidate takes no lock of the process and has no time limit in all besides ctx.
// Each round trip waits 150 ms for a reply and is not repeated.
//
// The first error ends the call; removed then counts the entries deleted so far. Without Redis, the
// error satisfies redisclient.IsUnavailable, except a cancelled ctx (context.Canceled) and a full
// connection pool (redis.ErrPoolTimeout); an error reply of Redis is wrapped too.
func (c *Cache) Invalidate(ctx context.Context, tags ...string) (removed int, err error) {
	tags = slices.Compact(slices.Sorted(slices.Values(tags)))
	for len(tags) > 0 {
		batches, err := c.detach(ctx, tags)
		if err != nil {
			return removed, err
		}
		var entries []string
		for _, b := range batches {
			entries = append(entries, b.Entries...)
		}
		n, err := c.deleteEntries(ctx, entries)
		removed += n
		if err != nil {
			return removed, fmt.Errorf("cache: invalidate: %w", err)
		}
		// A concurrent Invalidate detaches entries with a later time and deletes these entries.
		pipe := c.rdb.Pipeline()
		var unfinished []string
		for i, tag := range tags {
			pipe.ZRemRangeByScore(ctx, c.keys.TagPending(tag), "-inf", strconv.FormatInt(batches[i].ServerTime, 10))
			if batches[i].More {
				unfinished = append(unfinished, tag)
			}
		}
		if err := lua.Exec(ctx, pipe); err != nil {
			return removed, fmt.Errorf("cache: invalidate: %w", err)
		}
		tags = unfinished
	}
	return removed, nil
}

// detach stores the time of the invalidation and takes the next batch of entries of each tag, in 1
// round trip.
func (c *Cache) detach(ctx context.Context, tags []string) ([]lua.DetachResult, error) {
	pipe := c.rdb.Pipeline()
	detached := make([]lua.DetachCmd, len(tags))
	for i, tag := range tags {
		detached[i] = lua.Detach(ctx, pipe, c.tagKeys(tag), invalidationTTL, pendingTTL, batchSize)
	}
	if err := lua.Exec(ctx, pipe); err != nil {
		return nil, fmt.Errorf("cache: invalidate: %w", err)
	}
	batches := make([]lua.DetachResult, len(tags))
	for i, d := range detached {
		var err error
		if batches[i], err = d.Result(); err != nil {
			return nil, fmt.Errorf("cache: invalidate %s: %w", tags[i], err)
		}
	}
	return batches, nil
}

// deleteEntries deletes entries with the locks, 500 per round trip. The lock goes first: an entry
// stored before is deleted next, and a later store is refused.
func (c *Cache) deleteEntries(ctx context.Context, entries []string) (removed int, err error) {
	slices.Sort(entries)
	for chunk := range slices.Chunk(slices.Compact(entries), batchSize) {
		pipe := c.rdb.Pipeline()
		deletions := make([]interface{ Val() int64 }, len(chunk))
		for i, entry := range chunk {
			pipe.Del(ctx, c.keys.Lock(entry))
			deletions[i] = pipe.Del(ctx, entry)
		}
		_, err := pipe.Exec(ctx)
		for _, d := range deletions {
			removed += int(d.Val())
		}
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}
