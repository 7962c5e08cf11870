package scheduler

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

// fakeFunctions are test doubles of all functions.
type fakeFunctions struct {
	*httptest.Server
	mu       sync.Mutex
	handlers map[string]http.HandlerFunc // by function; default: 200 with the received payload
	received map[string][]string         // payloads by function
}

// startTestScheduler starts a scheduler with test doubles of the named functions, until the test
// ends.
func startTestScheduler(t *testing.T, db *pgxpool.Pool, names ...string) (*Scheduler, *fakeFunctions) {
	t.Helper()
	f := &fakeFunctions{handlers: map[string]http.HandlerFunc{}, received: map[string][]string{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	b, err := pubsub.OpenBroker(t.Context(), pubsub.BrokerOptions{Project: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	endpoints := map[string]string{}
	for _, name := range names {
		endpoints[name] = f.URL + "/" + name
	}
	s, err := New(b, db)
	if err != nil {
		t.Fatal(err)
	}
	dispatcher := b.StartDispatcher(endpoints, pubsub.Backoff{Min: time.Millisecond, Max: time.Millisecond}, s.RecordDelivery)
	t.Cleanup(dispatcher.Stop)
	s.Start(dispatcher)
	t.Cleanup(s.Stop)
	return s, f
}

func (f *fakeFunctions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var p struct{ Message struct{ Data string } }
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(body, &p)
	}
	data, wrong := base64.StdEncoding.DecodeString(p.Message.Data)
	if err != nil || wrong != nil {
		http.Error(w, "not a push", http.StatusBadRequest)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	f.mu.Lock()
	f.received[name] = append(f.received[name], string(data))
	answer := f.handlers[name]
	f.mu.Unlock()
	if answer != nil {
		answer(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"orders":%q}`, data)
}

func (f *fakeFunctions) handle(name string, answer http.HandlerFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handlers[name] = answer
}

func (f *fakeFunctions) receivedBy(name string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.received[name]...)
}

func waitUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for again := time.Tick(2 * time.Millisecond); !holds(); {
		select {
		case <-again:
		case <-ctx.Done():
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func TestRunJob_ReturnsFunctionReport(t *testing.T) {
	t.Parallel()
	s, f := startTestScheduler(t, nil, "SweepInbox", "SweepOutbox")
	for orders, dry := range map[string]bool{`{}`: false, `{"dryRun":true}`: true} {
		got, err := s.RunJob(t.Context(), "sweep-inbox", dry)
		if err != nil || got.Status != OK || fmt.Sprintf("%s", got.Report) != fmt.Sprintf(`{"orders":%q}`, orders) {
			t.Errorf("payload %s: got %s, error %v, want status ok with the payload", orders, got, err)
		}
	}
	f.handle("SweepOutbox", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 503) })
	if got, err := s.RunJob(t.Context(), "sweep-outbox", false); err != nil || got.Status != Failed || got.Report != "no\n" {
		t.Errorf("got %+v, error %v, want failed with the report", got, err)
	}
	for _, j := range s.Jobs() {
		want := map[string]Status{"sweep-inbox": OK, "sweep-outbox": Failed}[j.Name]
		if j.LastRun.Status != want || j.StartedAt.IsZero() != (want == "" && j.Name != relayJob) {
			t.Errorf("got %+v, want status %s", j, want)
		}
	}
	if _, err := s.RunJob(t.Context(), "sweep-choices", false); !errors.Is(err, ErrNoFunction) {
		t.Errorf("got error %v, want ErrNoFunction", err)
	}
	if len(f.receivedBy("SweepOutbox")) != 1 {
		t.Errorf("RunJob must push once: got %d pushes", len(f.receivedBy("SweepOutbox")))
	}
}

func TestPublishTick_ReachesFunctionAndIsRecorded(t *testing.T) {
	t.Parallel()
	s, f := startTestScheduler(t, nil, "SweepInbox", "Relay")
	waitUntil(t, "the relay is started with the system", func() bool { return len(f.receivedBy("Relay")) == 1 })
	var once sync.Once
	f.handle("SweepInbox", func(w http.ResponseWriter, _ *http.Request) {
		once.Do(func() { w.WriteHeader(500) })
		w.WriteHeader(202)
	})
	if err := s.publishTick(t.Context(), "sweep-inbox"); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the second attempt", func() bool { r := s.Jobs()[2].LastRun; return r.Status == OK && r.Attempt == 2 })
	if got := f.receivedBy("SweepInbox"); got[0] != TickPayload {
		t.Errorf("got payloads %v, want %s first", got, TickPayload)
	}
}

// addOutboxEvent writes an event of a session to the outbox.
func addOutboxEvent(t *testing.T, db *pgxpool.Pool, session string) (eventID string) {
	t.Helper()
	now := time.Now()
	e := event.New(event.Meta{SessionID: session, Now: now}, event.LocaleChanged{
		GuestSessionID: session, PreviousLocale: "en", NewLocale: "fr", Trigger: "user-explicit", OccurredAt: now,
	})
	if err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error { return outbox.Add(t.Context(), tx, e) }); err != nil {
		t.Fatal(err)
	}
	return e.ID
}

func execSQL(t *testing.T, db *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(context.WithoutCancel(t.Context()), sql, args...); err != nil {
		t.Error(err)
	}
}

func TestRunJob_RelayDrainsOutbox(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s, f := startTestScheduler(t, db, "Relay")
	waitUntil(t, "the first tick is over", func() bool { return !s.Jobs()[0].LastRun.At.IsZero() })
	session := id.New(id.Session, time.Now())
	refused := addOutboxEvent(t, db, session)
	addOutboxEvent(t, db, session) // blocked by the rejected event of the same session
	execSQL(t, db, `UPDATE bff_consumer.outbox SET attempts = 1, due_at = now() + interval '1 hour' WHERE id = $1`, refused)
	parked := addOutboxEvent(t, db, id.New(id.Session, time.Now()))
	execSQL(t, db, `UPDATE bff_consumer.outbox SET parked_at = now() WHERE id = $1`, parked)
	if n, err := s.countDue(t.Context()); err != nil || n != 0 {
		t.Errorf("got %d due, error %v, want 0", n, err)
	}
	due := addOutboxEvent(t, db, id.New(id.Session, time.Now()))
	if n, err := s.countDue(t.Context()); err != nil || n != 1 {
		t.Errorf("got %d due, error %v, want 1", n, err)
	}
	runs := 0
	f.handle("Relay", func(w http.ResponseWriter, _ *http.Request) {
		if runs++; runs == 3 { // the first two runs skip the event, as if another relay were sending it
			execSQL(t, db, `UPDATE bff_consumer.outbox SET published_at = now() WHERE id = $1`, due)
		}
		fmt.Fprint(w, runs)
	})
	if got, err := s.RunJob(t.Context(), relayJob, false); err != nil || got.Status != OK || got.Report != "3" {
		t.Errorf("got %+v, error %v, want ok with the report of run 3", got, err)
	}
	if got := f.receivedBy("Relay"); len(got) != 4 || got[3] != `{"once":true}` {
		t.Errorf("got payloads %v, want 4, the last with once", got)
	}
	if got, err := s.RunJob(t.Context(), relayJob, true); err != nil || got.Status != OK || f.receivedBy("Relay")[4] != `{"dryRun":true}` {
		t.Errorf("dry run: got %+v, error %v, want ok after one push", got, err)
	}
	addOutboxEvent(t, db, id.New(id.Session, time.Now()))
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got, err := s.RunJob(impatient, relayJob, false); err == nil {
		t.Errorf("got %+v, want the error of the context", got)
	}
}

func TestRunJob_RelayFailureIsReported(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	s, f := startTestScheduler(t, db, "Relay")
	f.handle("Relay", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no broker", 503) })
	if got, err := s.RunJob(t.Context(), relayJob, false); err != nil || got.Status != Failed || got.Report != "no broker\n" {
		t.Errorf("got %+v, error %v, want failed with the report", got, err)
	}
	f.handle("Relay", nil)
	db.Close()
	if _, err := s.RunJob(t.Context(), relayJob, false); err == nil {
		t.Error("closed pool: got no error")
	}
}
