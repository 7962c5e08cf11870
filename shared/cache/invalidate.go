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
	invalidationTTL = time.Minute // of an invalidation's time: longer than any fill may take
	pendingTTL      = time.Hour   // of what is still to be deleted: longer than an event is redelivered at short intervals
	batchSize       = 500         // entries of one tag taken, and entries deleted, in one round trip
)

func (c *Cache) tagKeys(tag string) lua.TagKeys {
	return lua.TagKeys{Entries: c.keys.Tag(tag), InvalidatedAt: c.keys.TagInvalidatedAt(tag), Pending: c.keys.TagPending(tag)}
}

// Invalidate removes every entry that carries one of the tags, and takes from every fill under way that will carry one the
// right to be stored. When it returns nil, what it found is gone and stays gone; after an error, or a crash, calling it
// again with the same tags finishes the work. It says how many entries it removed. However many there are, each round
// trip holds Redis up for a moment only; it waits 150 ms for the reply, then fails.
func (c *Cache) Invalidate(ctx context.Context, tags ...string) (removed int, err error) {
	tags = slices.Compact(slices.Sorted(slices.Values(tags)))
	for len(tags) > 0 {
		taken, err := c.detach(ctx, tags)
		if err != nil {
			return removed, err
		}
		var entries []string
		for _, t := range taken {
			entries = append(entries, t.Entries...)
		}
		n, err := c.deleteEntries(ctx, entries)
		removed += n
		if err != nil {
			return removed, fmt.Errorf("cache: bust: %w", err)
		}
		// What another Bust has detached meanwhile has a later time, and is that one's to delete.
		pipe := c.rdb.Pipeline()
		var rest []string
		for i, tag := range tags {
			pipe.ZRemRangeByScore(ctx, c.keys.TagPending(tag), "-inf", strconv.FormatInt(taken[i].ServerTime, 10))
			if taken[i].More {
				rest = append(rest, tag)
			}
		}
		if err := lua.Exec(ctx, pipe); err != nil {
			return removed, fmt.Errorf("cache: bust: %w", err)
		}
		tags = rest
	}
	return removed, nil
}

// detach takes the next entries of each tag.
func (c *Cache) detach(ctx context.Context, tags []string) ([]lua.DetachResult, error) {
	pipe := c.rdb.Pipeline()
	detached := make([]lua.DetachCmd, len(tags))
	for i, tag := range tags {
		detached[i] = lua.Detach(ctx, pipe, c.tagKeys(tag), invalidationTTL, pendingTTL, batchSize)
	}
	if err := lua.Exec(ctx, pipe); err != nil {
		return nil, fmt.Errorf("cache: bust: %w", err)
	}
	taken := make([]lua.DetachResult, len(tags))
	for i, d := range detached {
		var err error
		if taken[i], err = d.Result(); err != nil {
			return nil, fmt.Errorf("cache: bust %s: %w", tags[i], err)
		}
	}
	return taken, nil
}

// deleteEntries deletes entries and their locks. The lock goes first: a leader that stores before that is deleted, one that
// comes after is refused.
func (c *Cache) deleteEntries(ctx context.Context, entries []string) (removed int, err error) {
	slices.Sort(entries)
	for some := range slices.Chunk(slices.Compact(entries), batchSize) {
		pipe := c.rdb.Pipeline()
		gone := make([]interface{ Val() int64 }, len(some))
		for i, entry := range some {
			pipe.Del(ctx, c.keys.Lock(entry))
			gone[i] = pipe.Del(ctx, entry)
		}
		_, err := pipe.Exec(ctx)
		for _, g := range gone {
			removed += int(g.Val())
		}
		if err != nil {
			return removed, err
		}
	}
	return removed, nil
}
