package sweep

import (
	"context"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
)

// openFunction opens an entry point from the environment.
func (h *harness) openFunction(name string) error {
	h.T.Helper()
	return h.function(name).OpenWithLog(h.T.Context(), io.Discard)
}

// addSession adds a session that lasted an hour and has been idle since. optedOut puts it into the
// sets of sessions without consent.
func (h *harness) addSession(idle time.Duration, optedOut bool) string {
	h.T.Helper()
	seen := time.Now().Add(-idle)
	guest := id.New(id.Session, seen.Add(-time.Hour))
	err := h.RDB.ZAdd(h.T.Context(), keys.LastSeen(guest[len(guest)-1:], optedOut), redis.Z{Score: float64(seen.UnixMilli()), Member: guest}).Err()
	if err != nil {
		h.T.Fatal(err)
	}
	return guest
}

// endedSessions returns the session.ended.v1 events in the outbox, by session.
func (h *harness) endedSessions() map[string]event.SessionEnded {
	h.T.Helper()
	ends := map[string]event.SessionEnded{}
	for _, e := range h.Events("session.ended") {
		ends[e.SessionID] = e.Payload.(event.SessionEnded)
	}
	return ends
}

func TestSweepSessions_EndsIdleSessionOnce(t *testing.T) {
	h := newHarness(t)
	var idle []string
	for range sessionBatchSize/8 + 3 { // in all shards
		idle = append(idle, h.addSession(31*day, false))
	}
	active := h.addSession(30*day-time.Hour, false)
	h.mustRemove("SweepSessions", `{"dryRun":true}`, int64(len(idle)))
	h.mustRemove("SweepSessions", `{}`, int64(len(idle)))
	h.mustRemove("SweepSessions", `{}`, 0)
	ends := h.endedSessions()
	if len(ends) != len(idle) {
		t.Fatalf("got %d ended sessions, want %d", len(ends), len(idle))
	}
	for _, guest := range idle {
		e := ends[guest]
		if e.GuestSessionID != guest || e.Reason != event.TTLExpired || e.LifetimeSeconds != 3600 || !e.EndedAt.Equal(e.LastSeenAt.Add(session.TTL)) {
			t.Errorf("session %s: got %+v, want ttl-expired after 3600 s, ended %s after the last visit", guest, e, session.TTL)
		}
	}
	if n := h.RDB.ZCard(t.Context(), keys.LastSeen(active[len(active)-1:], false)).Val(); n != 1 {
		t.Errorf("got %d entries of the active session, want 1", n)
	}
}

func TestSweepSessions_ShardLargerThanOneBatch(t *testing.T) {
	h := newHarness(t)
	pipe := h.RDB.Pipeline()
	seen := time.Now().Add(-40 * day)
	for n := range 2*sessionBatchSize + 1 {
		guest := id.New(id.Session, seen)
		guest = guest[:len(guest)-1] + "7"
		pipe.ZAdd(t.Context(), keys.LastSeen("7", false), redis.Z{Score: float64(seen.UnixMilli() + int64(n%3)), Member: guest})
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := h.RDB.ZCard(t.Context(), keys.LastSeen("7", false)).Val()
	h.mustRemove("SweepSessions", `{}`, all)
	if got := int64(len(h.endedSessions())); got != all {
		t.Errorf("got %d ended sessions, want %d", got, all)
	}
}

func TestSweepSessions_RemovesInvalidIDsWithoutEvent(t *testing.T) {
	h := newHarness(t)
	guest := h.addSession(31*day, false)
	for _, member := range []string{"", "somebody", "gms_\x00", "\xff"} {
		h.RDB.ZAdd(t.Context(), keys.LastSeen("0", false), redis.Z{Score: 1, Member: member})
	}
	h.mustRemove("SweepSessions", `{}`, 5)
	if ends := h.endedSessions(); len(ends) != 1 || ends[guest].GuestSessionID != guest {
		t.Errorf("got the ended sessions %+v, want %s only", ends, guest)
	}
	h.mustRemove("SweepSessions", `{}`, 0)
}

func TestSweepSessions_PublishesNothingForOptedOutSessions(t *testing.T) {
	h := newHarness(t)
	h.addSession(31*day, true)
	refused, cleared := h.addSession(31*day, false), h.addSession(31*day, false)
	for guest, isCleared := range map[string]bool{refused: false, cleared: true} {
		h.Exec(`INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at, cleared_at)
			VALUES ($1, $2, false, now(), CASE WHEN $2 THEN now() END)`, guest, isCleared)
	}
	h.mustRemove("SweepSessions", `{}`, 3)
	if ends := h.endedSessions(); len(ends) != 0 {
		t.Errorf("got the ended sessions %v, want none", ends)
	}
	h.mustRemove("SweepSessions", `{}`, 0)
}

func TestSweepSessions_AbandonsWishlistOfEndedSession(t *testing.T) {
	h := newHarness(t)
	guest, other := h.addSession(31*day, true), h.addSession(day, false)
	for _, owner := range []string{guest, other} {
		h.addWishlistEntry(owner, time.Now().Add(-40*day))
	}
	h.mustRemove("SweepSessions", `{}`, 1)
	if h.Count("wishlist_anonymous WHERE guest_session_id = $1 AND removed_at IS NOT NULL", guest) != 1 {
		t.Error("the wishlist of the ended session is not removed")
	}
	if h.Count("wishlist_anonymous WHERE guest_session_id = $1 AND removed_at IS NULL", other) != 1 {
		t.Error("the wishlist of another session is removed")
	}
}

func (h *harness) addWishlistEntry(guest string, added time.Time) {
	h.T.Helper()
	h.Exec(`INSERT INTO bff_consumer.wishlist_anonymous (id, guest_session_id, tenant_id, property_id, source, added_at)
		VALUES ($1, $2, gen_random_uuid(), gen_random_uuid(), 'list', $3)`, id.New(id.Wishlist, added), guest, added)
}

// hookedPool calls beforeTx before each transaction and batch.
type hookedPool struct {
	*pgxpool.Pool
	beforeTx func()
}

func (m hookedPool) Begin(ctx context.Context) (pgx.Tx, error) {
	m.beforeTx()
	return m.Pool.Begin(ctx)
}

func (m hookedPool) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	m.beforeTx()
	return m.Pool.SendBatch(ctx, b)
}

func TestSweepSessions_KeepsSessionResumedDuringSweep(t *testing.T) {
	now := time.Now()
	for name, resume := range map[string]func(h *harness, guest, shard string){
		"with consent": func(h *harness, guest, shard string) {
			h.RDB.ZAdd(t.Context(), keys.LastSeen(shard, false), redis.Z{Score: float64(now.UnixMilli()), Member: guest})
		},
		"without consent": func(h *harness, guest, shard string) {
			h.RDB.ZRem(t.Context(), keys.LastSeen(shard, false), guest)
			h.RDB.ZAdd(t.Context(), keys.LastSeen(shard, true), redis.Z{Score: float64(now.UnixMilli()), Member: guest})
		},
	} {
		h := newHarness(t)
		guest, gone := h.addSession(31*day, false), ""
		shard := guest[len(guest)-1:]
		for gone == "" || gone[len(gone)-1:] != shard { // in the same batch
			gone = id.New(id.Session, now.Add(-32*day))
		}
		h.RDB.ZAdd(t.Context(), keys.LastSeen(shard, false), redis.Z{Score: float64(now.Add(-31 * day).UnixMilli()), Member: gone})
		h.addWishlistEntry(guest, now.Add(-40*day))
		h.addWishlistEntry(gone, now.Add(-40*day))
		s := &sessionSweeper{rdb: h.RDB, keys: keys, instance: "test-1", db: hookedPool{h.DB, sync.OnceFunc(func() { resume(h, guest, shard) })}}
		n, more, err := s.sweep(t.Context(), now, func() bool { return false })
		if n != 1 || more || err != nil {
			t.Errorf("%s: got %d ended sessions, more %t, %v, want 1", name, n, more, err)
		}
		ends := h.endedSessions()
		if _, ended := ends[guest]; ended || ends[gone].GuestSessionID != gone {
			t.Errorf("%s: got the ended sessions %v, want %s only", name, ends, gone)
		}
		if h.Count("wishlist_anonymous WHERE guest_session_id = $1 AND removed_at IS NULL", guest) != 1 {
			t.Errorf("%s: the wishlist of the resumed session is removed", name)
		}
		if h.Count("wishlist_anonymous WHERE removed_at IS NULL") != 1 {
			t.Errorf("%s: the wishlist of the ended session is not removed", name)
		}
	}
}

func TestSweepSessions_InterruptedRunPublishesOnce(t *testing.T) {
	h := newHarness(t)
	guest := h.addSession(31*day, false)
	h.mustRemove("SweepSessions", `{}`, 1)
	seen := h.endedSessions()[guest].LastSeenAt // as after a crash between commit and RemoveIdle
	h.RDB.ZAdd(t.Context(), keys.LastSeen(guest[len(guest)-1:], false), redis.Z{Score: float64(seen.UnixMilli()), Member: guest})
	h.mustRemove("SweepSessions", `{}`, 1)
	if n := h.Count("outbox"); n != 1 {
		t.Errorf("got %d events, want 1", n)
	}
}

func TestSweepSessions_ConcurrentRunsEndEachSessionOnce(t *testing.T) {
	h := newHarness(t)
	var idle []string
	for range 300 {
		idle = append(idle, h.addSession(31*day, false))
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if status, _ := h.trigger("SweepSessions", `{}`); status != 200 {
				t.Errorf("got %d, want 200", status)
			}
		})
	}
	all.Wait()
	ends := h.endedSessions()
	if len(ends) != len(idle) || h.Count("outbox") != len(idle) || slices.ContainsFunc(idle, func(g string) bool { return ends[g].GuestSessionID != g }) {
		t.Errorf("got %d ended sessions in %d events, want %d", len(ends), h.Count("outbox"), len(idle))
	}
}

func TestSweepSessions_FailsWithoutStores(t *testing.T) {
	h := newHarness(t)
	h.addSession(31*day, false)
	t.Setenv("DATABASE_URL", "postgres://127.0.0.1:1/none")
	h.openAll()
	if status, _ := h.trigger("SweepSessions", `{}`); status != 503 {
		t.Errorf("without Postgres: got %d, want 503", status)
	}
	h.Redis.Stop()
	for _, options := range []string{`{}`, `{"dryRun":true}`} {
		if status, _ := h.trigger("SweepSessions", options); status != 503 {
			t.Errorf("%s without Redis: got %d, want 503", options, status)
		}
	}
	t.Setenv("REDIS_ADDR", "")
	if err := h.openFunction("SweepSessions"); err == nil {
		t.Error("REDIS_ADDR is empty: got no error")
	}
}
