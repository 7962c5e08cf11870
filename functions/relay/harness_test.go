package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
	"melmastoon.ghasi.io/bff-consumer/shared/config"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

var keys = redisclient.Keys{Env: "test"}

// harness is a database, a broker and a clock that tests move; relays are started in it.
type harness struct {
	testing.TB
	url       string
	db        *pgxpool.Pool // of the test
	broker    *pubsubtest.Broker
	redisAddr string
	clock     atomic.Int64
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	broker, err := pubsubtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Stop)
	t.Setenv("PUBSUB_EMULATOR_HOST", broker.Addr)
	h := &harness{TB: t, url: pgtest.URL(t), broker: broker, redisAddr: "127.0.0.1:1"} // nobody is there
	if h.db, err = pgxpool.New(context.Background(), h.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.db.Close)
	h.clock.Store(time.Now().UnixMilli())
	return h
}

func (h *harness) withRedis() *harness {
	redistest.New(h.TB)
	h.redisAddr = redistest.Addr(h.TB)
	return h
}

func (h *harness) now() time.Time { return time.UnixMilli(h.clock.Load()).UTC() }

func (h *harness) advance(d time.Duration) { h.clock.Add(d.Milliseconds() + 1) }

func (h *harness) newRelay(change ...func(*environment)) *Relay {
	h.Helper()
	e := environment{
		Environment: config.Environment{Env: keys.Env, RedisAddr: h.redisAddr, Postgres: postgres.Config{URL: h.url}}, MaxConns: 6, Project: "test", Run: maxRunDuration, Workers: 4,
	}
	for _, c := range change {
		c(&e)
	}
	r, err := build(context.Background(), e, h.now, nil)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() {
		r.db.Close()
		r.rdb.Close()
		r.broker.Close()
	})
	return r
}

// runOnce drains as far as it goes.
func (h *harness) runOnce(r *Relay) Report {
	h.Helper()
	report, err := r.Run(h.Context(), Options{Once: true})
	if err != nil {
		h.Error(err)
	}
	return report
}

// startRun starts a run that ends with the test, or with stop, which returns its report.
func (h *harness) startRun(r *Relay) (stop func() Report) {
	try := h.startFallibleRun(r)
	stop = sync.OnceValue(func() Report {
		report, err := try()
		if err != nil {
			h.Error(err)
		}
		return report
	})
	h.Cleanup(func() { stop() })
	return stop
}

// startFallibleRun is begin for a run that may fail.
func (h *harness) startFallibleRun(r *Relay) (stop func() (Report, error)) {
	ctx, cancel := context.WithCancel(context.Background())
	var report Report
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		report, err = r.Run(ctx, Options{})
	}()
	stop = sync.OnceValues(func() (Report, error) { cancel(); <-done; return report, err })
	h.Cleanup(func() { stop() })
	return stop
}

// awaitMessages waits until so many messages have arrived.
func (h *harness) awaitMessages(n int) {
	h.Helper()
	ctx, cancel := context.WithTimeout(h.Context(), 30*time.Second)
	defer cancel()
	if err := h.broker.Await(ctx, n); err != nil {
		h.Fatalf("%d of %d messages arrived: %v", len(h.broker.Messages()), n, err)
	}
}

func newSession() string { return id.New(id.Session, time.Now()) }

const (
	localeTopic   = "melmastoon.bff.consumer.locale.changed.v1"
	currencyTopic = "melmastoon.bff.consumer.currency.changed.v1"
)

// newEvents makes events of one session; kinds has a letter for each: l for a change of locale, c of currency, e for its
// end.
func newEvents(session, kinds string) []event.Event {
	var all []event.Event
	now := time.Now()
	for _, kind := range kinds {
		var p event.Payload
		switch kind {
		case 'l':
			p = event.LocaleChanged{GuestSessionID: session, PreviousLocale: "en", NewLocale: "ps-AF", Trigger: "user-explicit", OccurredAt: now}
		case 'c':
			p = event.CurrencyChanged{GuestSessionID: session, PreviousCurrency: "USD", NewCurrency: "AFN", Trigger: "user-explicit", OccurredAt: now}
		case 'e':
			p = event.SessionEnded{GuestSessionID: session, EndedAt: now, Reason: event.ExplicitClear, LastSeenAt: now}
		}
		all = append(all, event.New(event.Meta{
			SessionID: session, RequestID: id.New(id.Request, now), Now: now, Instance: "test-1",
			Traceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
		}, p))
	}
	return all
}

// addEvents commits events and returns their ids.
func (h *harness) addEvents(all ...event.Event) []string {
	h.Helper()
	err := pgx.BeginFunc(h.Context(), h.db, func(tx pgx.Tx) error { return outbox.Add(h.Context(), tx, all...) })
	if err != nil {
		h.Fatal(err)
	}
	ids := make([]string, len(all))
	for i, e := range all {
		ids[i] = e.ID
	}
	return ids
}

// insertRow writes a row as nobody of us would.
func (h *harness) insertRow(topic, payload, headers string) string {
	h.Helper()
	row := id.New(id.Event, time.Now())
	h.exec(`INSERT INTO bff_consumer.outbox (id, topic, payload, headers, retention_class)
		VALUES ($1::text, $2, $3::text::jsonb, $4::text::jsonb, 'operational')`, row, topic, payload, headers)
	return row
}

func (h *harness) exec(sql string, args ...any) {
	h.Helper()
	if _, err := h.db.Exec(context.Background(), sql, args...); err != nil {
		h.Fatal(err)
	}
}

// queryValue reads one value.
func queryValue[T any](h *harness, sql string, args ...any) (v T) {
	h.Helper()
	if err := h.db.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		h.Fatal(err)
	}
	return v
}

func (h *harness) countPending() int {
	return queryValue[int](h, `SELECT count(*) FROM bff_consumer.outbox WHERE published_at IS NULL`)
}

// receivedIDs is the ids of what the broker took of a session, each where it came first.
func (h *harness) receivedIDs(session string) (ids []string) {
	for _, a := range h.broker.Messages() {
		if a.OrderingKey == session && !slices.Contains(ids, a.ID) {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// countDuplicates counts what came more than once, and how much of that is owed to answers that were lost.
func (h *harness) countDuplicates() (all, lost int) {
	seen := map[string]bool{}
	last := map[string]bool{} // whether the one before was lost
	for _, a := range h.broker.Messages() {
		if seen[a.ID] {
			all++
			if last[a.ID] {
				lost++
			}
		}
		seen[a.ID], last[a.ID] = true, a.ResponseLost
	}
	return all, lost
}

func (h *harness) expectReceived(session string, want []string) {
	h.Helper()
	if got := h.receivedIDs(session); !slices.Equal(got, want) {
		h.Errorf("of %s arrived\n%s\nwant\n%s", session, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// setConsent records what a guest decided.
func (h *harness) setConsent(session string, telemetry, cleared bool) {
	h.exec(`INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at, cleared_at)
		VALUES ($1, $2, false, now(), CASE WHEN $3 THEN now() END)
		ON CONFLICT (guest_session_id) DO UPDATE SET telemetry = excluded.telemetry, cleared_at = excluded.cleared_at`, session, telemetry, cleared)
}

// captureLogs collects what is said while the test runs.
func captureLogs(t testing.TB) *lockedBuffer {
	b := &lockedBuffer{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(b, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return b
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var _ io.Writer = (*lockedBuffer)(nil)

// toJSON is v as JSON.
func toJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(err)
	}
	return string(b)
}
