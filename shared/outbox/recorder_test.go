package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
	"golang.org/x/sync/errgroup"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
	"melmastoon.ghasi.io/bff-consumer/shared/stores"
)

var keys = keyspace.Keys{Env: "test"}

// watch remembers what each statement was allowed, and counts them.
type watch struct {
	mu      sync.Mutex
	allowed []time.Duration // until the statement's deadline, from its start
}

func (w *watch) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	w.note(ctx)
	return ctx
}

func (w *watch) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceAcquireStart sees also those that never get a connection.
func (w *watch) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	w.note(ctx)
	return ctx
}

func (w *watch) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {}

func (w *watch) note(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(24 * time.Hour)
	}
	w.allowed = append(w.allowed, time.Until(deadline))
}

// take is what was noted since the last take.
func (w *watch) take() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.allowed
	w.allowed = nil
	return taken
}

// shaky is a database behind a proxy, which is healed before the pool says goodbye through it.
func shaky(t *testing.T) (*pgxpool.Pool, *stores.Proxy, *watch) {
	t.Helper()
	url, proxy := pgtest.Behind(t)
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{}
	cfg.ConnConfig.Tracer = w
	db, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	t.Cleanup(proxy.Heal)
	return db, proxy, w
}

// waiting are the ids in the spill, oldest first.
func waiting(t *testing.T, rdb redis.UniversalClient) []string {
	t.Helper()
	list, err := rdb.LRange(t.Context(), SpillKey(keys), 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(list))
	for i, text := range list {
		row, _ := decode(t, text)
		ids[len(list)-1-i] = row.ID
	}
	return ids
}

func ids(events []event.Event) []string {
	all := make([]string, len(events))
	for i, e := range events {
		all[i] = e.ID
	}
	return all
}

func TestRecordNeedsNoTransaction(t *testing.T) {
	db, rdb := pgtest.New(t), redistest.New(t)
	r := NewRecorder(db, rdb, keys)
	events := changes(3)
	for range 2 { // twice is once
		if err := r.Record(t.Context(), events...); err != nil {
			t.Fatal(err)
		}
	}
	if n := stored(t, db); n != 3 {
		t.Errorf("%d rows, want 3", n)
	}
	if got := waiting(t, rdb); len(got) != 0 {
		t.Errorf("%d rows wait in Redis, want none", len(got))
	}
	if err := r.Record(t.Context()); err != nil {
		t.Errorf("nothing: %v", err)
	}
}

func TestRecordIgnoresAGuestWhoHungUp(t *testing.T) {
	db := pgtest.New(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := NewRecorder(db, redistest.New(t), keys).Record(gone, changes(1)...); err != nil {
		t.Fatal(err)
	}
	if n := stored(t, db); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestManyRecordAtOnce(t *testing.T) {
	db := pgtest.New(t)
	// Twenty at once on a busy machine may be more than 300 ms of work; what does not fit is spilled, never lost.
	rdb := redistest.New(t)
	r := NewRecorder(db, rdb, keys)
	shared := changes(2)
	var all errgroup.Group
	for range 20 {
		all.Go(func() error { return r.Record(t.Context(), append(changes(3), shared...)...) })
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, id := range waiting(t, rdb) {
		seen[id] = true
	}
	rows, _ := db.Query(t.Context(), "SELECT id::text FROM bff_consumer.outbox")
	inTable, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range inTable {
		seen[id] = true
	}
	if len(seen) != 20*3+2 {
		t.Errorf("%d events, want %d", len(seen), 20*3+2)
	}
}

func TestWhatPostgresDoesNotTakeWaitsInRedis(t *testing.T) {
	for name, away := range map[string]func(*stores.Proxy){"broken": (*stores.Proxy).Break, "hanging": (*stores.Proxy).Hang} {
		for _, idle := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, connected before: %v", name, idle), func(t *testing.T) {
				db, proxy, watch := shaky(t)
				rdb := redistest.New(t)
				if idle {
					if err := db.Ping(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				away(proxy)
				watch.take()
				events := changes(2)
				if err := NewRecorder(db, rdb, keys).Record(t.Context(), events...); err != nil {
					t.Fatal(err)
				}
				for _, allowed := range watch.take() {
					if allowed > 300*time.Millisecond {
						t.Errorf("Postgres was given %v, want at most 300 ms", allowed)
					}
				}
				if diff := cmp.Diff(ids(events), waiting(t, rdb)); diff != "" {
					t.Errorf("in Redis: %s", diff)
				}
			})
		}
	}
}

func TestARowThatWaitsIsTheRowThatWasMeant(t *testing.T) {
	db, proxy, _ := shaky(t)
	rdb := redistest.New(t)
	proxy.Break()
	e := changes(1)[0]
	if err := NewRecorder(db, rdb, keys).Record(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	text, err := rdb.RPop(t.Context(), SpillKey(keys)).Result()
	if err != nil {
		t.Fatal(err)
	}
	row, got := decode(t, text)
	if diff := cmp.Diff(e, got); diff != "" {
		t.Error(diff)
	}
	proxy.Heal()
	for range 2 {
		if err := insert(t.Context(), db, []Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	if n := stored(t, db); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestTheSpillIsCappedAndKeepsTheNewest(t *testing.T) {
	db, proxy, _ := shaky(t)
	rdb := redistest.New(t)
	proxy.Break()
	old := make([]any, spillCap)
	for i := range old {
		old[i] = "{}"
	}
	if err := rdb.RPush(t.Context(), SpillKey(keys), old...).Err(); err != nil {
		t.Fatal(err)
	}
	events := changes(1)
	if err := NewRecorder(db, rdb, keys).Record(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
	if n := rdb.LLen(t.Context(), SpillKey(keys)).Val(); n != spillCap {
		t.Errorf("%d rows wait, want %d", n, spillCap)
	}
	newest, err := rdb.LIndex(t.Context(), SpillKey(keys), 0).Result()
	if err != nil {
		t.Fatal(err)
	}
	if row, _ := decode(t, newest); row.ID != events[0].ID {
		t.Errorf("newest is %s, want %s", row.ID, events[0].ID)
	}
}

func TestBothAwayIsAnError(t *testing.T) {
	db, proxy, _ := shaky(t)
	server := redistest.Server(t)
	for name, away := range map[string]func(){"gone": server.Stop, "hanging": server.Hang} {
		t.Run(name, func(t *testing.T) {
			server.Start()
			proxy.Break()
			away()
			err := NewRecorder(db, server.Client(), keys).Record(t.Context(), changes(2)...)
			if err == nil || !strings.Contains(err.Error(), "record 2 events") {
				t.Errorf("%v, want an error that counts them", err)
			}
		})
	}
}

func TestRedisMayTakeAMomentForWhatPostgresDoesNotTake(t *testing.T) {
	db, proxy, _ := shaky(t)
	server := redistest.Server(t)
	rdb := keyspace.Open(keyspace.Config{Addr: server.Addr})
	defer rdb.Close()
	proxy.Break()
	if err := server.Client().Do(t.Context(), "CLIENT", "PAUSE", 300, "ALL").Err(); err != nil {
		t.Fatal(err)
	}
	events := changes(2)
	if err := NewRecorder(db, rdb, keys).Record(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ids(events), waiting(t, server.Client())); diff != "" {
		t.Errorf("in Redis: %s", diff)
	}
}

func TestWhatPostgresRefusesIsNotSpilled(t *testing.T) {
	db, rdb := pgtest.New(t), redistest.New(t)
	bad := changes(1)[0]
	bad.RetentionClass = "for ever"
	r := NewRecorder(db, rdb, keys)
	for range tolerated + 1 {
		if err := r.Record(t.Context(), bad); !refused(err) {
			t.Fatalf("%v, want a broken constraint", err)
		}
	}
	if got := waiting(t, rdb); len(got) != 0 {
		t.Errorf("%d rows wait in Redis, want none", len(got))
	}
	if err := r.Record(t.Context(), changes(1)...); err != nil || stored(t, db) != 1 {
		t.Errorf("refusals opened the breaker: %v", err)
	}
	bad.Payload = nowhere{}
	if err := r.Record(t.Context(), bad); err == nil {
		t.Error("a payload without JSON was accepted")
	}
}

func TestAPostgresThatIsAwayIsNotAskedEachTime(t *testing.T) {
	db, proxy, watch := shaky(t)
	rdb := redistest.New(t)
	r := NewRecorder(db, rdb, keys)
	proxy.Break()
	for range tolerated {
		if err := r.Record(t.Context(), changes(1)...); err != nil {
			t.Fatal(err)
		}
	}
	watch.take()
	if err := r.Record(t.Context(), changes(1)...); err != nil {
		t.Fatal(err)
	}
	if asked := watch.take(); len(asked) != 0 {
		t.Errorf("asked %d times, want none", len(asked))
	}
	if got := waiting(t, rdb); len(got) != tolerated+1 {
		t.Errorf("%d rows wait, want %d", len(got), tolerated+1)
	}
	rdb.Close()
	if err := r.Record(t.Context(), changes(1)...); !errors.Is(err, gobreaker.ErrOpenState) {
		t.Errorf("both away: %v, want to know of the breaker", err)
	}
}

func TestAPostgresThatIsBackIsUsedAgain(t *testing.T) {
	db, proxy, _ := shaky(t)
	rdb := redistest.New(t)
	r := newRecorder(db, rdb, keys, time.Nanosecond) // the pause is over when anybody looks
	proxy.Break()
	for range tolerated {
		if err := r.Record(t.Context(), changes(1)...); err != nil {
			t.Fatal(err)
		}
	}
	proxy.Heal()
	for range 2 {
		if err := r.Record(t.Context(), changes(1)...); err != nil {
			t.Fatal(err)
		}
	}
	if n := stored(t, db); n != 2 {
		t.Errorf("%d rows, want 2", n)
	}
}
