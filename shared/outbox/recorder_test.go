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
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/localstores"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

var keys = redisclient.Keys{Env: "test"}

// deadlineTracer records the time limit of each statement and of each acquired connection.
type deadlineTracer struct {
	mu       sync.Mutex
	timeouts []time.Duration // until the statement's deadline, from its start
}

func (w *deadlineTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	w.record(ctx)
	return ctx
}

func (w *deadlineTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// TraceAcquireStart also sees statements that never get a connection.
func (w *deadlineTracer) TraceAcquireStart(ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData) context.Context {
	w.record(ctx)
	return ctx
}

func (w *deadlineTracer) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {
}

func (w *deadlineTracer) record(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(24 * time.Hour)
	}
	w.timeouts = append(w.timeouts, time.Until(deadline))
}

// takeTimeouts returns the time limits since the last call.
func (w *deadlineTracer) takeTimeouts() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.timeouts
	w.timeouts = nil
	return taken
}

// newProxiedPool returns a pool behind a proxy. The proxy is healed before the pool is closed,
// because closing needs the connections.
func newProxiedPool(t *testing.T) (*pgxpool.Pool, *localstores.Proxy, *deadlineTracer) {
	t.Helper()
	url, proxy := pgtest.ProxiedURL(t)
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	w := &deadlineTracer{}
	cfg.ConnConfig.Tracer = w
	db, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	t.Cleanup(proxy.Heal)
	return db, proxy, w
}

// bufferedIDs returns the event ids in the buffer, oldest first.
func bufferedIDs(t *testing.T, rdb redis.UniversalClient) []string {
	t.Helper()
	list, err := rdb.LRange(t.Context(), BufferKey(keys), 0, -1).Result()
	if err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(list))
	for i, text := range list {
		row, _ := decodeBuffered(t, text)
		ids[len(list)-1-i] = row.ID
	}
	return ids
}

func eventIDs(events []event.Event) []string {
	all := make([]string, len(events))
	for i, e := range events {
		all[i] = e.ID
	}
	return all
}

func TestOutboxRecord_WritesOnceWithoutTransaction(t *testing.T) {
	db, rdb := pgtest.New(t), redistest.New(t)
	r := NewRecorder(db, rdb, keys)
	events := newEvents(3)
	for range 2 { // twice is once
		if err := r.recordBuffered(t.Context(), events...); err != nil {
			t.Fatal(err)
		}
	}
	if n := countRows(t, db); n != 3 {
		t.Errorf("got %d rows, want 3", n)
	}
	if got := bufferedIDs(t, rdb); len(got) != 0 {
		t.Errorf("got %d buffered rows, want none", len(got))
	}
	if err := r.recordBuffered(t.Context()); err != nil {
		t.Errorf("without events: got %v, want no error", err)
	}
}

func TestOutboxRecord_IgnoresClientCancellation(t *testing.T) {
	db := pgtest.New(t)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := NewRecorder(db, redistest.New(t), keys).recordBuffered(gone, newEvents(1)...); err != nil {
		t.Fatal(err)
	}
	if n := countRows(t, db); n != 1 {
		t.Errorf("got %d rows, want 1", n)
	}
}

func TestOutboxRecord_ConcurrentCallsLoseNothing(t *testing.T) {
	db := pgtest.New(t)
	// On a busy machine twenty calls may take more than 300 ms: the rest is buffered, never lost.
	rdb := redistest.New(t)
	r := NewRecorder(db, rdb, keys)
	shared := newEvents(2)
	var all errgroup.Group
	for range 20 {
		all.Go(func() error { return r.recordBuffered(t.Context(), append(newEvents(3), shared...)...) })
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, id := range bufferedIDs(t, rdb) {
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
		t.Errorf("got %d events, want %d", len(seen), 20*3+2)
	}
}

func TestOutboxRecord_BuffersInRedisWhilePostgresIsUnavailable(t *testing.T) {
	for name, breakProxy := range map[string]func(*localstores.Proxy){"broken": (*localstores.Proxy).Break, "hanging": (*localstores.Proxy).Hang} {
		for _, idle := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, connected before: %v", name, idle), func(t *testing.T) {
				db, proxy, watch := newProxiedPool(t)
				rdb := redistest.New(t)
				if idle {
					if err := db.Ping(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				breakProxy(proxy)
				watch.takeTimeouts()
				events := newEvents(2)
				if err := NewRecorder(db, rdb, keys).recordBuffered(t.Context(), events...); err != nil {
					t.Fatal(err)
				}
				for _, allowed := range watch.takeTimeouts() {
					if allowed > 300*time.Millisecond {
						t.Errorf("time limit of Postgres: got %v, want at most 300 ms", allowed)
					}
				}
				if diff := cmp.Diff(eventIDs(events), bufferedIDs(t, rdb)); diff != "" {
					t.Errorf("buffered ids (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestOutboxRecord_BufferedRowRoundTrips(t *testing.T) {
	db, proxy, _ := newProxiedPool(t)
	rdb := redistest.New(t)
	proxy.Break()
	e := newEvents(1)[0]
	if err := NewRecorder(db, rdb, keys).recordBuffered(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	text, err := rdb.RPop(t.Context(), BufferKey(keys)).Result()
	if err != nil {
		t.Fatal(err)
	}
	row, got := decodeBuffered(t, text)
	if diff := cmp.Diff(e, got); diff != "" {
		t.Error(diff)
	}
	proxy.Heal()
	for range 2 {
		if err := insert(t.Context(), db, []Row{row}); err != nil {
			t.Fatal(err)
		}
	}
	if n := countRows(t, db); n != 1 {
		t.Errorf("got %d rows, want 1", n)
	}
}

func TestOutboxRecord_BufferIsCappedAndKeepsNewest(t *testing.T) {
	db, proxy, _ := newProxiedPool(t)
	rdb := redistest.New(t)
	proxy.Break()
	old := make([]any, bufferCap)
	for i := range old {
		old[i] = "{}"
	}
	if err := rdb.RPush(t.Context(), BufferKey(keys), old...).Err(); err != nil {
		t.Fatal(err)
	}
	events := newEvents(1)
	if err := NewRecorder(db, rdb, keys).recordBuffered(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
	if n := rdb.LLen(t.Context(), BufferKey(keys)).Val(); n != bufferCap {
		t.Errorf("got %d buffered rows, want %d", n, bufferCap)
	}
	newest, err := rdb.LIndex(t.Context(), BufferKey(keys), 0).Result()
	if err != nil {
		t.Fatal(err)
	}
	if row, _ := decodeBuffered(t, newest); row.ID != events[0].ID {
		t.Errorf("newest row: got %s, want %s", row.ID, events[0].ID)
	}
}

func TestOutboxRecord_FailsWithoutPostgresAndRedis(t *testing.T) {
	db, proxy, _ := newProxiedPool(t)
	server := redistest.NewServer(t)
	for name, stopRedis := range map[string]func(){"stopped": server.Stop, "hanging": server.Hang} {
		t.Run(name, func(t *testing.T) {
			server.Start()
			proxy.Break()
			stopRedis()
			err := NewRecorder(db, server.Client(), keys).recordBuffered(t.Context(), newEvents(2)...)
			if err == nil || !strings.Contains(err.Error(), "record 2 events") {
				t.Errorf("got %v, want an error with the number of events", err)
			}
		})
	}
}

func TestOutboxRecord_ToleratesSlowRedis(t *testing.T) {
	db, proxy, _ := newProxiedPool(t)
	server := redistest.NewServer(t)
	rdb := redisclient.Open(redisclient.Config{Addr: server.Addr})
	defer rdb.Close()
	proxy.Break()
	if err := server.Client().Do(t.Context(), "CLIENT", "PAUSE", 300, "ALL").Err(); err != nil {
		t.Fatal(err)
	}
	events := newEvents(2)
	if err := NewRecorder(db, rdb, keys).recordBuffered(t.Context(), events...); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(eventIDs(events), bufferedIDs(t, server.Client())); diff != "" {
		t.Errorf("buffered ids (-want +got):\n%s", diff)
	}
}

func TestOutboxRecord_DoesNotBufferRejectedRows(t *testing.T) {
	db, rdb := pgtest.New(t), redistest.New(t)
	bad := newEvents(1)[0]
	bad.RetentionClass = "for ever"
	r := NewRecorder(db, rdb, keys)
	for range breakerThreshold + 1 {
		if err := r.recordBuffered(t.Context(), bad); !isRejected(err) {
			t.Fatalf("got %v, want a constraint violation", err)
		}
	}
	if got := bufferedIDs(t, rdb); len(got) != 0 {
		t.Errorf("got %d buffered rows, want none", len(got))
	}
	if err := r.recordBuffered(t.Context(), newEvents(1)...); err != nil || countRows(t, db) != 1 {
		t.Errorf("after rejected rows: got %v, want a closed breaker", err)
	}
	bad.Payload = unencodable{}
	if err := r.recordBuffered(t.Context(), bad); err == nil {
		t.Error("payload without a JSON form: got no error")
	}
}

func TestOutboxRecord_BreakerOpensAfterRepeatedFailures(t *testing.T) {
	db, proxy, watch := newProxiedPool(t)
	rdb := redistest.New(t)
	r := NewRecorder(db, rdb, keys)
	proxy.Break()
	for range breakerThreshold {
		if err := r.recordBuffered(t.Context(), newEvents(1)...); err != nil {
			t.Fatal(err)
		}
	}
	watch.takeTimeouts()
	if err := r.recordBuffered(t.Context(), newEvents(1)...); err != nil {
		t.Fatal(err)
	}
	if statements := watch.takeTimeouts(); len(statements) != 0 {
		t.Errorf("open breaker: got %d statements, want none", len(statements))
	}
	if got := bufferedIDs(t, rdb); len(got) != breakerThreshold+1 {
		t.Errorf("got %d buffered rows, want %d", len(got), breakerThreshold+1)
	}
	rdb.Close()
	if err := r.recordBuffered(t.Context(), newEvents(1)...); !errors.Is(err, gobreaker.ErrOpenState) {
		t.Errorf("without both stores: got %v, want the error of the open breaker", err)
	}
}

func TestOutboxRecord_BreakerClosesWhenPostgresRecovers(t *testing.T) {
	db, proxy, _ := newProxiedPool(t)
	rdb := redistest.New(t)
	r := newRecorder(db, rdb, keys, time.Nanosecond) // the breaker is half open at once
	proxy.Break()
	for range breakerThreshold {
		if err := r.recordBuffered(t.Context(), newEvents(1)...); err != nil {
			t.Fatal(err)
		}
	}
	proxy.Heal()
	for range 2 {
		if err := r.recordBuffered(t.Context(), newEvents(1)...); err != nil {
			t.Fatal(err)
		}
	}
	if n := countRows(t, db); n != 2 {
		t.Errorf("got %d rows, want 2", n)
	}
}
