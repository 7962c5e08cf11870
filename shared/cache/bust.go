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
	noteLife = time.Minute // of an invalidation's time: longer than any fill may take
	restLife = time.Hour   // of what is still to be deleted: longer than an event is redelivered at short intervals
	batch    = 500         // entries deleted in one round trip
)

func (c *Cache) tagKeys(tag string) lua.TagKeys {
	return lua.TagKeys{Entries: c.keys.Tag(tag), Busted: c.keys.Busted(tag), Busting: c.keys.Busting(tag)}
}

// Bust removes every entry that carries one of the tags, and takes from every fill under way that will carry one the
// right to be stored. When it returns nil, what it found is gone and stays gone; after an error, or a crash, calling it
// again with the same tags finishes the work. It says how many entries it removed. Each round trip waits 200 ms for
// Redis, then fails.
func (c *Cache) Bust(ctx context.Context, tags ...string) (int, error) {
	tags = slices.Compact(slices.Sorted(slices.Values(tags)))
	pipe := c.rdb.Pipeline()
	detached := make([]lua.Detached, len(tags))
	for i, tag := range tags {
		detached[i] = lua.Detach(ctx, pipe, c.tagKeys(tag), noteLife, restLife)
	}
	if err := lua.Exec(ctx, pipe); err != nil {
		return 0, fmt.Errorf("cache: bust: %w", err)
	}
	var entries []string
	times := make([]int64, len(tags))
	for i, d := range detached {
		at, found, err := d.Result()
		if err != nil {
			return 0, fmt.Errorf("cache: bust %s: %w", tags[i], err)
		}
		times[i], entries = at, append(entries, found...)
	}
	removed, err := c.remove(ctx, entries)
	if err != nil {
		return removed, fmt.Errorf("cache: bust: %w", err)
	}
	// What another Bust has detached meanwhile has a later time, and is that one's to delete.
	for i, tag := range tags {
		pipe.ZRemRangeByScore(ctx, c.keys.Busting(tag), "-inf", strconv.FormatInt(times[i], 10))
	}
	if err := lua.Exec(ctx, pipe); err != nil {
		return removed, fmt.Errorf("cache: bust: %w", err)
	}
	return removed, nil
}

// remove deletes entries and their locks. The lock goes first: a leader that stores before that is deleted, one that
// comes after is refused.
func (c *Cache) remove(ctx context.Context, entries []string) (removed int, err error) {
	slices.Sort(entries)
	for some := range slices.Chunk(slices.Compact(entries), batch) {
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
