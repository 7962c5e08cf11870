package relay

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// queryTracer records the statements and counts the round trips of a pool.
type queryTracer struct {
	mu              sync.Mutex
	roundTrips      int
	queries         []string
	pendingDeadline time.Time // of the last query of outbox.HasPending
}

func (s *queryTracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	s.record(q.SQL, true)
	if strings.HasPrefix(strings.TrimSpace(q.SQL), "SELECT true") {
		s.pendingDeadline, _ = ctx.Deadline()
	}
	return ctx
}
func (s *queryTracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (s *queryTracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, b pgx.TraceBatchStartData) context.Context {
	s.record("", true)
	return ctx
}
func (s *queryTracer) TraceBatchQuery(_ context.Context, _ *pgx.Conn, q pgx.TraceBatchQueryData) {
	s.record(q.SQL, false)
}
func (s *queryTracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

// record adds a statement, and a round trip when roundTrip is set.
func (s *queryTracer) record(sql string, roundTrip bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if roundTrip {
		s.roundTrips++
	}
	if sql != "" {
		s.queries = append(s.queries, strings.Join(strings.Fields(sql), " "))
	}
}

func TestRelayRun_BatchUsesTwoRoundTripsAndPollOne(t *testing.T) {
	h := newHarness(t)
	setConsentMaxAge(t, time.Hour) // on a busy machine consents would be read again
	r := h.newRelay()
	tracer := &queryTracer{}
	cfg := r.db.Config()
	cfg.ConnConfig.Tracer = tracer
	r.db.Close()
	var err error
	if r.db, err = pgxpool.NewWithConfig(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	shardOf := newSession()
	for range batchSize / 2 {
		h.addEvents(newEvents(newSessionInShard(shardOf), "lc")...)
	}
	expectQueries := func(roundTrips int, want ...string) {
		t.Helper()
		ok := len(tracer.queries) == len(want)
		for i := range min(len(want), len(tracer.queries)) {
			ok = ok && strings.HasPrefix(tracer.queries[i], want[i])
		}
		if !ok || tracer.roundTrips != roundTrips {
			t.Errorf("got %d round trips, want %d:\n%s\nwant\n%s", tracer.roundTrips, roundTrips, strings.Join(tracer.queries, "\n"), strings.Join(want, "\n"))
		}
		tracer.queries, tracer.roundTrips = nil, 0
	}
	h.runOnce(r)
	// HasPending, a poll, a full batch, an empty batch at the end of the shard, a poll without
	// result, the report.
	expectQueries(8, "SELECT true", "WITH RECURSIVE walk (shard", "BEGIN", "SET LOCAL", "SELECT pg_try_advisory_xact_lock", "WITH RECURSIVE walk (session", "UPDATE", "COMMIT",
		"BEGIN", "SET LOCAL", "SELECT pg_try_advisory_xact_lock", "WITH RECURSIVE walk (session", "ROLLBACK", "WITH RECURSIVE walk (shard", "SELECT count(*)")
	h.runOnce(r)
	expectQueries(2, "SELECT true", "SELECT count(*)")
	// A hanging Postgres must not use up the whole run.
	if end := tracer.pendingDeadline; end.IsZero() || end.After(time.Now().Add(queryTimeout)) {
		t.Errorf("deadline of HasPending: got %v, want at most %s from its start", end, queryTimeout)
	}
}
