package relay

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
	"melmastoon.ghasi.io/bff-consumer/shared/config"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

// TestMain makes the Pub/Sub library talk to a server without TLS. newRelay overrides the address.
func TestMain(m *testing.M) {
	os.Setenv("PUBSUB_EMULATOR_HOST", "127.0.0.1:1")
	os.Exit(m.Run())
}

var keys = redisclient.Keys{Env: "test"}

// harness adds a fake Pub/Sub to the common harness. Its clock is the clock of every relay of the
// test.
type harness struct {
	*functest.Harness
	broker *pubsubtest.Broker
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	broker, err := pubsubtest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Stop)
	h := &harness{functest.New(t), broker}
	h.UseInternalAPI()
	return h
}

// advancePast moves the clock by d and a millisecond, so that a row due after d is due.
func (h *harness) advancePast(d time.Duration) { h.Advance(d + time.Millisecond) }

func (h *harness) newRelay(change ...func(*environment)) *Relay {
	h.T.Helper()
	e := environment{
		Environment: config.Environment{Env: keys.Env, RedisAddr: h.Redis.Addr, Postgres: postgres.Config{URL: h.Database}}, MaxConns: 6, Project: "test", Endpoint: h.broker.Addr, Run: maxRunDuration, Workers: 4,
	}
	for _, c := range change {
		c(&e)
	}
	r, err := build(context.Background(), e, h.Now, nil)
	if err != nil {
		h.T.Fatal(err)
	}
	h.T.Cleanup(func() {
		r.db.Close()
		r.rdb.Close()
		r.broker.Close()
	})
	return r
}

// runOnce runs the relay until nothing more can be sent.
func (h *harness) runOnce(r *Relay) Report {
	h.T.Helper()
	report, err := r.Run(h.T.Context(), Options{Once: true})
	if err != nil {
		h.T.Error(err)
	}
	return report
}

// startRun starts a run that ends with the test or with stop, which returns the report. An error of
// the run fails the test.
func (h *harness) startRun(r *Relay) (stop func() Report) {
	stopRun := h.startFallibleRun(r)
	stop = sync.OnceValue(func() Report {
		report, err := stopRun()
		if err != nil {
			h.T.Error(err)
		}
		return report
	})
	h.T.Cleanup(func() { stop() })
	return stop
}

// startFallibleRun is startRun for a run that may fail.
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
	h.T.Cleanup(func() { stop() })
	return stop
}

// awaitMessages waits until the broker has accepted n messages.
func (h *harness) awaitMessages(n int) {
	h.T.Helper()
	ctx, cancel := context.WithTimeout(h.T.Context(), 30*time.Second)
	defer cancel()
	if err := h.broker.Await(ctx, n); err != nil {
		h.T.Fatalf("got %d messages, want %d: %v", len(h.broker.Messages()), n, err)
	}
}

// awaitRequests waits until the broker has received n requests.
func (h *harness) awaitRequests(n int) {
	h.T.Helper()
	h.Eventually("requests at the broker", func() bool { return h.broker.Requests() >= n })
}

func newSession() string { return id.New(id.Session, time.Now()) }

// newSessionInShard returns a session whose rows are in the shard of another session.
func newSessionInShard(of string) string { return newSession()[:29] + of[29:] }

const (
	localeTopic   = "melmastoon.bff.consumer.locale.changed.v1"
	currencyTopic = "melmastoon.bff.consumer.currency.changed.v1"
)

// newEvents returns events of one session. kinds has a letter for each event: l for a change of
// locale, c for a change of currency, e for the end of the session.
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

// addEvents commits events to the outbox and returns their ids.
func (h *harness) addEvents(all ...event.Event) []string {
	h.T.Helper()
	err := pgx.BeginFunc(h.T.Context(), h.DB, func(tx pgx.Tx) error { return outbox.Add(h.T.Context(), tx, all...) })
	if err != nil {
		h.T.Fatal(err)
	}
	return eventIDs(all)
}

func eventIDs(all []event.Event) []string {
	ids := make([]string, len(all))
	for i, e := range all {
		ids[i] = e.ID
	}
	return ids
}

// insertRow inserts a row with any payload and headers, and returns its id.
func (h *harness) insertRow(topic, payload, headers string) string {
	h.T.Helper()
	row := id.New(id.Event, time.Now())
	h.Exec(`INSERT INTO bff_consumer.outbox (id, topic, payload, headers, retention_class)
		VALUES ($1::text, $2, $3::text::jsonb, $4::text::jsonb, 'operational')`, row, topic, payload, headers)
	return row
}

// queryValue returns the value that a query selects.
func queryValue[T any](h *harness, sql string, args ...any) T {
	h.T.Helper()
	return functest.QueryValue[T](h.Harness, sql, args...)
}

// receivedIDs returns the event ids of a session's messages in the order of their first arrival.
func (h *harness) receivedIDs(session string) (ids []string) {
	for _, m := range h.broker.Messages() {
		if m.OrderingKey == session && !slices.Contains(ids, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// countDuplicates counts repeated messages, and the repetitions that follow a lost response.
func (h *harness) countDuplicates() (all, afterLostResponse int) {
	seen, lost := map[string]bool{}, map[string]bool{}
	for _, m := range h.broker.Messages() {
		if seen[m.ID] {
			all++
			if lost[m.ID] {
				afterLostResponse++
			}
		}
		seen[m.ID], lost[m.ID] = true, m.ResponseLost
	}
	return all, afterLostResponse
}

// expectReceived checks the messages of a session, without repetitions.
func (h *harness) expectReceived(session string, want []string) {
	h.T.Helper()
	if got := h.receivedIDs(session); !slices.Equal(got, want) {
		h.T.Errorf("messages of %q (-want +got):\n%s", session, cmp.Diff(want, got))
	}
}

// setConsent records the decision of a guest.
func (h *harness) setConsent(session string, telemetry, cleared bool) {
	h.T.Helper()
	h.Exec(`INSERT INTO bff_consumer.session_choice (guest_session_id, telemetry, marketing, decided_at, cleared_at)
		VALUES ($1, $2, false, now(), CASE WHEN $3 THEN now() END)
		ON CONFLICT (guest_session_id) DO UPDATE SET telemetry = excluded.telemetry, cleared_at = excluded.cleared_at`, session, telemetry, cleared)
}

// captureLogs collects the records of the default logger until the end of the test. A test with it
// must not run in parallel.
func captureLogs(t testing.TB) *functest.Log {
	t.Helper()
	l := &functest.Log{}
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(l, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return l
}

// expectReport compares a report with want.
func expectReport(t testing.TB, got, want Report) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
}
