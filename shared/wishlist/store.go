package wishlist

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
)

// Store keeps wishlists. Safe for concurrent use.
type Store struct {
	rdb  redis.UniversalClient
	db   BatchSender
	keys redisclient.Keys
	now  func() time.Time
}

// New makes a Room.
func New(rdb redis.UniversalClient, db BatchSender, keys redisclient.Keys, now func() time.Time) *Store {
	return &Store{rdb, db, keys, now}
}

// EnqueueCopy puts a mutation's effect on the copy on the caller's pipeline; Mend is to be called once it has run. An addition
// is appended, which works on the very list it was made to; any other case takes the whole list.
func (r *Store) EnqueueCopy(ctx context.Context, pipe redis.Pipeliner, sessionID string, c *Change) {
	switch {
	case !c.Applied:
	case c.list != nil:
		c.copyCmd = r.enqueueReplace(ctx, pipe, sessionID, *c.list)
	default:
		c.copyCmd = lua.WishlistAppend(ctx, pipe, r.keys.Session(sessionID), r.listKey(sessionID), c.previousVersion, c.version, encodeItem(c.Item), session.TTL)
	}
}

// RebuildCopy makes the copy whole when an addition did not fit it, because others were made at the same time or Redis had
// lost it. It fails when a store does; then the next read of the list mends.
func (r *Store) RebuildCopy(ctx context.Context, sessionID string, c *Change) error {
	if c.copyCmd == nil || c.list != nil {
		return nil
	}
	if fits, err := c.copyCmd.Int(); err != nil || fits == 1 {
		return err
	}
	list, err := r.read(ctx, sessionID, stepTimeout(ctx)) // with time left to write it, and to answer
	if err != nil {
		return err
	}
	pipe := r.rdb.Pipeline()
	r.enqueueReplace(ctx, pipe, sessionID, list)
	return lua.Exec(ctx, pipe)
}

// How long Postgres may take for a read.
const (
	readTimeout         = 300 * time.Millisecond // that the copy can stand in for
	uncopiedReadTimeout = time.Second            // of a list that has no copy, and would not be shown
)

// Get reads the record, within 300 ms. Of a session that was cleared there is none: session.ErrCleared.
func (r *Store) Get(ctx context.Context, sessionID string) (List, error) {
	return r.read(ctx, sessionID, readTimeout)
}

// GetWithoutCopy is Get for a list that has no copy to show instead, within a second.
func (r *Store) GetWithoutCopy(ctx context.Context, sessionID string) (List, error) {
	return r.read(ctx, sessionID, uncopiedReadTimeout)
}

func (r *Store) read(ctx context.Context, sessionID string, within time.Duration) (list List, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var batch pgx.Batch
	var choice *session.ConsentRecord
	session.QueueReadConsent(&batch, sessionID, &choice)
	QueueRead(&batch, sessionID, &list)
	if err := r.db.SendBatch(ctx, &batch).Close(); err != nil {
		return List{}, fmt.Errorf("wishlist: get: %w", err)
	}
	if choice != nil && choice.Cleared {
		return List{}, session.ErrCleared
	}
	return list, nil
}

// EnqueueRepair puts the record in the place of a copy that says something else, on the caller's pipeline. copied and there
// are what was read of the copy, by session.Lists.
func (r *Store) EnqueueRepair(ctx context.Context, pipe redis.Pipeliner, sessionID string, record List, copied []jsontext.Value, there bool) {
	if there && slices.EqualFunc(record.Items, copied, func(i Item, entry jsontext.Value) bool { return encodeItem(i) == string(entry) }) {
		return
	}
	r.enqueueReplace(ctx, pipe, sessionID, record)
}

func (r *Store) enqueueReplace(ctx context.Context, pipe redis.Pipeliner, sessionID string, list List) *redis.Cmd {
	entries := make([]string, len(list.Items))
	for i, item := range list.Items {
		entries[i] = encodeItem(item)
	}
	return lua.WishlistReplace(ctx, pipe, r.keys.Session(sessionID), r.listKey(sessionID), strconv.FormatInt(list.version, 10), session.TTL, entries...)
}

func (r *Store) listKey(sessionID string) string { return r.keys.SessionPart(sessionID, "wishlist") }
