package sweep

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/event/strict"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func openFunction(t *testing.T, name string) error {
	t.Helper()
	for _, f := range web.Functions() {
		if f.Name == name {
			return f.OpenWithLog(t.Context(), io.Discard)
		}
	}
	t.Fatalf("no entry point %s", name)
	return nil
}

// addSession is a session that was here for an hour and then no more.
func (h *harness) addSession(quiet time.Duration, silent bool) string {
	h.t.Helper()
	seen := time.Now().Add(-quiet)
	guest := id.New(id.Session, seen.Add(-time.Hour))
	err := h.rdb.ZAdd(h.t.Context(), keys.LastSeen(guest[len(guest)-1:], silent), redis.Z{Score: float64(seen.UnixMilli()), Member: guest}).Err()
	if err != nil {
		h.t.Fatal(err)
	}
	return guest
}

// endedSessions are the sessions whose end the outbox tells.
func (h *harness) endedSessions() map[string]event.SessionEnded {
	h.t.Helper()
	rows, err := h.db.Query(h.t.Context(), "SELECT payload FROM bff_consumer.outbox")
	if err != nil {
		h.t.Fatal(err)
	}
	defer rows.Close()
	ends := map[string]event.SessionEnded{}
	for rows.Next() {
		var message []byte
		if err := rows.Scan(&message); err != nil {
			h.t.Fatal(err)
		}
		var e event.Event
		if err := json.Unmarshal(message, &e); err != nil {
			h.t.Fatal(err)
		}
		if err := strict.Validate(e); err != nil {
			h.t.Error(err)
		}
		ends[e.SessionID] = e.Payload.(event.SessionEnded)
	}
	return ends
}

func TestSweepSessions_EndsIdleSessionOnce(t *testing.T) {
	h := newHarness(t)
	var quiet []string
	for range sessionBatchSize/8 + 3 { // over all lanes
		quiet = append(quiet, h.addSession(31*day, false))
	}
	lively := h.addSession(30*day-time.Hour, false)
	h.mustRemove("SweepSessions", `{"dryRun":true}`, int64(len(quiet)))
	h.mustRemove("SweepSessions", `{}`, int64(len(quiet)))
	h.mustRemove("SweepSessions", `{}`, 0)
	ends := h.endedSessions()
	if len(ends) != len(quiet) {
		t.Fatalf("%d ends, want %d", len(ends), len(quiet))
	}
	for _, guest := range quiet {
		e := ends[guest]
		if e.GuestSessionID != guest || e.Reason != event.TTLExpired || e.LifetimeSeconds != 3600 || !e.EndedAt.Equal(e.LastSeenAt.Add(session.TTL)) {
			t.Errorf("%+v", e)
		}
	}
	if n := h.rdb.ZCard(t.Context(), keys.LastSeen(lively[len(lively)-1:], false)).Val(); n != 1 {
		t.Error("one who may come back is forgotten")
	}
}

func TestSweepSessions_ShardLargerThanOneBatch(t *testing.T) {
	h := newHarness(t)
	pipe := h.rdb.Pipeline()
	seen := time.Now().Add(-40 * day)
	for n := range 2*sessionBatchSize + 1 {
		guest := id.New(id.Session, seen)
		guest = guest[:len(guest)-1] + "7"
		pipe.ZAdd(t.Context(), keys.LastSeen("7", false), redis.Z{Score: float64(seen.UnixMilli() + int64(n%3)), Member: guest})
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := h.rdb.ZCard(t.Context(), keys.LastSeen("7", false)).Val()
	h.mustRemove("SweepSessions", `{}`, all)
	if got := int64(len(h.endedSessions())); got != all {
		t.Errorf("%d ends, want %d", got, all)
	}
}

func TestSweepSessions_RemovesInvalidIDsWithoutEvent(t *testing.T) {
	h := newHarness(t)
	guest := h.addSession(31*day, false)
	for _, member := range []string{"", "somebody", "gms_\x00", "\xff"} {
		h.rdb.ZAdd(t.Context(), keys.LastSeen("0", false), redis.Z{Score: 1, Member: member})
	}
	h.mustRemove("SweepSessions", `{}`, 5)
	if ends := h.endedSessions(); len(ends) != 1 || ends[guest].GuestSessionID != guest {
		t.Errorf("%+v", ends)
	}
	h.mustRemove("SweepSessions", `{}`, 0)
}

func TestSweepSessions_PublishesNothingForOptedOutSessions(t *testing.T) {
	h := newHarness(t)
	silent, refused, cleared := h.addSession(31*day, true), h.addSession(31*day, false), h.addSession(31*day, false)
	for guest, over := range map[string]bool{refused: false, cleared: true} {
		h.exec(`INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at, cleared_at)
			VALUES ($1, $2, false, now(), CASE WHEN $2 THEN now() END)`, guest, over)
	}
	h.mustRemove("SweepSessions", `{}`, 3)
	if ends := h.endedSessions(); len(ends) != 0 {
		t.Errorf("told: %v", ends)
	}
	_ = silent
	h.mustRemove("SweepSessions", `{}`, 0)
}

func TestSweepSessions_AbandonsWishlistOfEndedSession(t *testing.T) {
	h := newHarness(t)
	guest, other := h.addSession(31*day, true), h.addSession(day, false)
	for _, of := range []string{guest, other} {
		h.addWishlistEntry(of, time.Now().Add(-40*day))
	}
	h.mustRemove("SweepSessions", `{}`, 1)
	if h.count("wishlist_anonymous WHERE guest_session_id = $1 AND removed_at IS NOT NULL", guest) != 1 {
		t.Error("kept for somebody who cannot come back")
	}
	if h.count("wishlist_anonymous WHERE guest_session_id = $1 AND removed_at IS NULL", other) != 1 {
		t.Error("took another guest's")
	}
}

func (h *harness) addWishlistEntry(guest string, added time.Time) {
	h.t.Helper()
	h.exec(`INSERT INTO bff_consumer.wishlist_anonymous (id, guest_session_id, tenant_id, property_id, source, added_at)
		VALUES ($1, $2, gen_random_uuid(), gen_random_uuid(), 'list', $3)`, id.New(id.Wishlist, added), guest, added)
}

// hookedPool is a database before whose transactions something happens, once.
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
	for name, back := range map[string]func(h *harness, guest, lane string){
		"and is seen": func(h *harness, guest, lane string) {
			h.rdb.ZAdd(t.Context(), keys.LastSeen(lane, false), redis.Z{Score: float64(now.UnixMilli()), Member: guest})
		},
		"and may not be told of now": func(h *harness, guest, lane string) {
			h.rdb.ZRem(t.Context(), keys.LastSeen(lane, false), guest)
			h.rdb.ZAdd(t.Context(), keys.LastSeen(lane, true), redis.Z{Score: float64(now.UnixMilli()), Member: guest})
		},
	} {
		h := newHarness(t)
		guest, gone := h.addSession(31*day, false), ""
		lane := guest[len(guest)-1:]
		for gone == "" || gone[len(gone)-1:] != lane { // of the same step
			gone = id.New(id.Session, now.Add(-32*day))
		}
		h.rdb.ZAdd(t.Context(), keys.LastSeen(lane, false), redis.Z{Score: float64(now.Add(-31 * day).UnixMilli()), Member: gone})
		h.addWishlistEntry(guest, now.Add(-40*day))
		h.addWishlistEntry(gone, now.Add(-40*day))
		s := &sessionSweeper{rdb: h.rdb, keys: keys, instance: "test-1", db: hookedPool{h.db, sync.OnceFunc(func() { back(h, guest, lane) })}}
		n, more, err := s.sweep(t.Context(), now, func() bool { return false })
		if n != 1 || more || err != nil {
			t.Errorf("%s: %d ended, %v, %v", name, n, more, err)
		}
		ends := h.endedSessions()
		if _, told := ends[guest]; told || ends[gone].GuestSessionID != gone {
			t.Errorf("%s: told %v", name, ends)
		}
		if h.count("wishlist_anonymous WHERE guest_session_id = $1 AND removed_at IS NULL", guest) != 1 {
			t.Errorf("%s: the wishlist is gone", name)
		}
		if h.count("wishlist_anonymous WHERE removed_at IS NULL") != 1 {
			t.Errorf("%s: the other's wishlist stays", name)
		}
	}
}

func TestSweepSessions_InterruptedRunPublishesOnce(t *testing.T) {
	h := newHarness(t)
	guest := h.addSession(31*day, false)
	h.mustRemove("SweepSessions", `{}`, 1)
	seen := h.endedSessions()[guest].LastSeenAt // as if Redis had been lost between the two steps
	h.rdb.ZAdd(t.Context(), keys.LastSeen(guest[len(guest)-1:], false), redis.Z{Score: float64(seen.UnixMilli()), Member: guest})
	h.mustRemove("SweepSessions", `{}`, 1)
	if n := h.count("outbox"); n != 1 {
		t.Errorf("%d events", n)
	}
}

func TestSweepSessions_ConcurrentRunsEndEachSessionOnce(t *testing.T) {
	h := newHarness(t)
	var quiet []string
	for range 300 {
		quiet = append(quiet, h.addSession(31*day, false))
	}
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			if code, _ := h.trigger("SweepSessions", `{}`); code != 200 {
				t.Errorf("%d", code)
			}
		})
	}
	all.Wait()
	ends := h.endedSessions()
	if len(ends) != len(quiet) || h.count("outbox") != int64(len(quiet)) || slices.ContainsFunc(quiet, func(g string) bool { return ends[g].GuestSessionID != g }) {
		t.Errorf("%d ends in %d events, want %d", len(ends), h.count("outbox"), len(quiet))
	}
}

func TestSweepSessions_FailsWithoutStores(t *testing.T) {
	h := newHarness(t)
	h.addSession(31*day, false)
	t.Setenv("DATABASE_URL", "postgres://127.0.0.1:1/none")
	h.openAll()
	if code, _ := h.trigger("SweepSessions", `{}`); code != 503 {
		t.Errorf("without Postgres: %d", code)
	}
	h.redis.Stop()
	for _, orders := range []string{`{}`, `{"dryRun":true}`} {
		if code, _ := h.trigger("SweepSessions", orders); code != 503 {
			t.Errorf("without Redis: %d", code)
		}
	}
	t.Setenv("REDIS_ADDR", "")
	if err := openFunction(t, "SweepSessions"); err == nil {
		t.Error("opened without Redis")
	}
}
