package wishlist

import (
	"context"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
)

// encodeItem returns an item as stored in the copy. Equal items have equal bytes.
func encodeItem(i Item) string {
	b, err := json.Marshal(i)
	if err != nil {
		panic(err) // unreachable: the request was validated, so the strings are UTF-8
	}
	return string(b)
}

// DecodeCopy decodes the entries of a copy from session.Lists.Wishlist. It returns an error and an
// empty list if an entry is malformed, and an empty list for no entries. CPU only.
func DecodeCopy(entries []jsontext.Value) (List, error) {
	var l List
	for _, entry := range entries {
		var i Item
		if err := json.Unmarshal(entry, &i); err != nil {
			return List{}, err
		}
		l.Items = append(l.Items, i)
	}
	return l, nil
}

// EnqueueCopy queues the update of the copy after a mutation on the caller's pipeline: a script, or
// nothing for a mutation without effect. The caller runs the pipeline with lua.Exec and then calls
// RebuildCopy. An addition is appended if the copy has the version before the addition. A removal
// replaces the whole copy, unless the copy is newer. Without the session's hash in Redis, the
// scripts write nothing. EnqueueCopy sends nothing and cannot fail; without Redis the copy stays
// outdated until EnqueueRepair. c is the non-nil result of Add or Remove.
func (s *Store) EnqueueCopy(ctx context.Context, pipe redis.Pipeliner, sessionID string, c *Change) {
	switch {
	case !c.Applied:
	case c.list != nil:
		c.copyCmd = s.enqueueReplace(ctx, pipe, sessionID, *c.list)
	default:
		c.copyCmd = lua.WishlistAppend(ctx, pipe, s.keys.Session(sessionID), s.listKey(sessionID),
			c.previousVersion, c.version, encodeItem(c.Item), session.TTL)
	}
}

// RebuildCopy replaces the copy if EnqueueCopy could not append an addition, after a concurrent
// mutation or because Redis lost the copy or the session. The replacement takes a read of Postgres,
// within 1.5 s and at least 250 ms before the request's deadline, and a round trip to Redis, within
// the timeouts of the client; a disconnect of the client cancels both. Otherwise RebuildCopy costs
// nothing. It returns the error of the script of EnqueueCopy, without a read, session.ErrCleared,
// or the error of either store. The mutation stays committed; the next read of the list repairs the
// copy (see EnqueueRepair).
func (s *Store) RebuildCopy(ctx context.Context, sessionID string, c *Change) error {
	if c.copyCmd == nil || c.list != nil {
		return nil
	}
	if appended, err := c.copyCmd.Int(); err != nil || appended == 1 {
		return err
	}
	list, err := s.read(ctx, sessionID, stepTimeout(ctx)) // leaves time for the write and the response
	if err != nil {
		return err
	}
	pipe := s.rdb.Pipeline()
	s.enqueueReplace(ctx, pipe, sessionID, list)
	return lua.Exec(ctx, pipe)
}

// EnqueueRepair queues the replacement of a copy different from the record, on the caller's
// pipeline: a script, or nothing for a correct copy. The script keeps a newer copy and writes
// nothing without the session's hash. The caller runs the pipeline with lua.Exec. copied and exists
// are the results of session.Lists.Wishlist. EnqueueRepair sends nothing and cannot fail; without
// Redis the next read of the list tries again.
func (s *Store) EnqueueRepair(
	ctx context.Context, pipe redis.Pipeliner, sessionID string, record List, copied []jsontext.Value, exists bool,
) {
	isEqual := func(i Item, entry jsontext.Value) bool { return encodeItem(i) == string(entry) }
	if exists && slices.EqualFunc(record.Items, copied, isEqual) {
		return
	}
	s.enqueueReplace(ctx, pipe, sessionID, record)
}

// enqueueReplace queues the replacement of the copy, unless the copy is newer or Redis does not
// have the session.
func (s *Store) enqueueReplace(ctx context.Context, pipe redis.Pipeliner, sessionID string, list List) *redis.Cmd {
	entries := make([]string, len(list.Items))
	for i, item := range list.Items {
		entries[i] = encodeItem(item)
	}
	version := strconv.FormatInt(list.version, 10)
	return lua.WishlistReplace(ctx, pipe, s.keys.Session(sessionID), s.listKey(sessionID), version, session.TTL, entries...)
}

func (s *Store) listKey(sessionID string) string { return s.keys.SessionPart(sessionID, "wishlist") }
