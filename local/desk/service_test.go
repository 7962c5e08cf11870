package desk

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

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
	"melmastoon.ghasi.io/bff-consumer/local/scheduler"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

// fakeFunctions are doubles of all functions.
type fakeFunctions struct {
	*httptest.Server
	mu       sync.Mutex
	handlers map[string]http.HandlerFunc // by path; none: 200 and what arrived
	received map[string][]string         // what arrived, by path
}

// startTestService opens a desk over doubles of the functions named, until the test ends.
func startTestService(t *testing.T, db *pgxpool.Pool, names ...string) (*Service, *fakeFunctions) {
	t.Helper()
	f := &fakeFunctions{handlers: map[string]http.HandlerFunc{}, received: map[string][]string{}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	b, err := pubsub.OpenBroker(t.Context(), pubsub.BrokerOptions{Project: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	doors := map[string]string{}
	for _, name := range names {
		doors[name] = f.URL + "/" + name
	}
	d, err := Start(Options{Broker: b, Endpoints: doors, Backoff: pubsub.Backoff{Min: time.Millisecond, Max: time.Millisecond}, DB: db})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	return d, f
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
			t.Fatalf("never: %s", what)
		}
	}
}

const tenantID = "tnt_01H8YN7Q2P7GZ4F8Y5CK4MV3DT"

func tenantSuspended(at string) PlatformEvent {
	return PlatformEvent{
		Subject: "melmastoon.tenant.suspended.v1",
		Payload: jsontext.Value(`{"tenantId": "` + tenantID + `", "reason": "billing", "suspendedAt": "` + at + `"}`),
	}
}

func TestPublish_BuildsProducerEnvelope(t *testing.T) {
	d, f := startTestService(t, nil, "TenantSuspended")
	eventID, messageID, err := d.Publish(t.Context(), tenantSuspended("2026-04-23T09:14:22.041Z"))
	if err != nil || !id.Valid(id.Event, eventID) || messageID == "" {
		t.Fatalf("%s %s %v", eventID, messageID, err)
	}
	waitUntil(t, "it is delivered", func() bool { return len(d.Events()) == 1 && d.Events()[0].State == pubsub.Delivered })
	var got struct {
		Envelope map[string]any
		Payload  map[string]any
	}
	if err := json.Unmarshal([]byte(f.receivedBy("TenantSuspended")[0]), &got); err != nil {
		t.Fatal(err)
	}
	for member, want := range map[string]any{
		"eventId": eventID, "subject": "melmastoon.tenant.suspended.v1", "version": 1.0, "occurredAt": "2026-04-23T09:14:22.041Z",
		"producer": "tenant-service", "tenantId": tenantID, "userId": nil, "sessionId": nil, "retentionClass": "operational", "samplingRate": 1.0,
		"schemaUri": "https://schemas.melmastoon.ghasi.io/tenant/tenant-suspended/v1.json",
	} {
		if got.Envelope[member] != want {
			t.Errorf("%s: %v, want %v", member, got.Envelope[member], want)
		}
	}
	if len(got.Envelope) != len(EnvelopeMembers()) || got.Payload["reason"] != "billing" {
		t.Errorf("%v", got)
	}
	e := d.Events()[0]
	if e.EventID != eventID || e.MessageID != messageID || e.Subscription != "bff-consumer.tenant.suspended.v1" || e.Attempts != 1 ||
		e.Outcome == nil || e.Outcome.Status != 200 || e.DeadLetter != "" {
		t.Errorf("%+v", e)
	}
}

func TestPublish_RepeatDiffersOnlyInPublishedAt(t *testing.T) {
	d, f := startTestService(t, nil, "TenantSuspended")
	first := tenantSuspended("2026-04-23T09:14:22.041Z")
	eventID, _, err := d.Publish(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	first.Envelope = map[string]jsontext.Value{"eventId": jsontext.Value(`"` + eventID + `"`)}
	if again, _, err := d.Publish(t.Context(), first); err != nil || again != eventID {
		t.Fatalf("%s %v", again, err)
	}
	waitUntil(t, "both arrive", func() bool { return len(f.receivedBy("TenantSuspended")) == 2 })
	var both [2]map[string]map[string]any
	for i, data := range f.receivedBy("TenantSuspended") {
		if err := json.Unmarshal([]byte(data), &both[i]); err != nil {
			t.Fatal(err)
		}
		delete(both[i]["envelope"], "publishedAt")
	}
	if fmt.Sprint(both[0]) != fmt.Sprint(both[1]) {
		t.Errorf("%v\n%v", both[0], both[1])
	}
	older := tenantSuspended("never")
	older.Envelope = map[string]jsontext.Value{"occurredAt": jsontext.Value(`"2020-01-01T00:00:00.000Z"`), "producer": jsontext.Value(`7`)}
	envelope, err := buildEnvelope(older, time.Now())
	if err != nil || string(envelope["occurredAt"]) != `"2020-01-01T00:00:00.000Z"` || string(envelope["producer"]) != "7" {
		t.Errorf("%s %v", envelope, err)
	}
}

func TestEvents_ShowDeadLetteredEvent(t *testing.T) {
	d, f := startTestService(t, nil, "ThemePublished")
	f.handle("ThemePublished", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(500)
		io.WriteString(w, `{"code":"INTERNAL"}`)
	})
	broken := "{"
	if eventID, _, err := d.Publish(t.Context(), PlatformEvent{Subject: "melmastoon.theme.published.v1", Raw: &broken}); err != nil || eventID != "" {
		t.Fatalf("%s %v", eventID, err)
	}
	waitUntil(t, "it is given up", func() bool { return d.Events()[0].State == pubsub.DeadLettered })
	e := d.Events()[0]
	if e.Attempts != 5 || e.DeadLetter != "bff-consumer.theme.published.v1.dlq" || e.Outcome.Status != 500 ||
		fmt.Sprintf("%s", e.Outcome.Body) != `{"code":"INTERNAL"}` || f.receivedBy("ThemePublished")[4] != "{" {
		t.Errorf("%+v %+v", e, e.Outcome)
	}
}

func TestEventTracker_EvictsOldest(t *testing.T) {
	p := newEventTracker()
	for n := range maxTrackedEvents + 3 {
		p.recordPublished(fmt.Sprint(n), "s", "", time.Now())
	}
	if len(p.order) != maxTrackedEvents || len(p.byID) != maxTrackedEvents || p.order[0] != "3" {
		t.Errorf("%d %d %s", len(p.order), len(p.byID), p.order[0])
	}
}

func TestRunJob_ReturnsFunctionReport(t *testing.T) {
	d, f := startTestService(t, nil, "SweepInbox", "SweepOutbox")
	for orders, dry := range map[string]bool{`{}`: false, `{"dryRun":true}`: true} {
		got, err := d.RunJob(t.Context(), "sweep-inbox", dry)
		if err != nil || got.Status != scheduler.OK || fmt.Sprintf("%s", got.Report) != fmt.Sprintf(`{"orders":%q}`, orders) {
			t.Errorf("%s: %s %v", orders, got, err)
		}
	}
	f.handle("SweepOutbox", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", 503) })
	if got, err := d.RunJob(t.Context(), "sweep-outbox", false); err != nil || got.Status != scheduler.Failed || got.Report != "no\n" {
		t.Errorf("%+v %v", got, err)
	}
	for _, j := range d.Jobs() {
		want := map[string]scheduler.Status{"sweep-inbox": scheduler.OK, "sweep-outbox": scheduler.Failed}[j.Name]
		if j.LastRun.Status != want || j.StartedAt.IsZero() != (want == "" && j.Name != relayJob) {
			t.Errorf("%+v, want %s", j, want)
		}
	}
	if _, err := d.RunJob(t.Context(), "sweep-choices", false); !errors.Is(err, ErrNoFunction) {
		t.Errorf("%v", err)
	}
	if len(f.receivedBy("SweepOutbox")) != 1 {
		t.Errorf("a job that is run by hand is not tried again: %d", len(f.receivedBy("SweepOutbox")))
	}
}

func TestPublishTick_ReachesFunctionAndIsRecorded(t *testing.T) {
	d, f := startTestService(t, nil, "SweepInbox", "Relay")
	waitUntil(t, "the relay is started with the system", func() bool { return len(f.receivedBy("Relay")) == 1 })
	var once sync.Once
	f.handle("SweepInbox", func(w http.ResponseWriter, _ *http.Request) {
		once.Do(func() { w.WriteHeader(500) })
		w.WriteHeader(202)
	})
	if err := d.publishTick(t.Context(), "sweep-inbox"); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "the second attempt", func() bool { r := d.Jobs()[2].LastRun; return r.Status == scheduler.OK && r.Attempt == 2 })
	if got := f.receivedBy("SweepInbox"); got[0] != scheduler.TickPayload {
		t.Errorf("%v", got)
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
	db := pgtest.New(t)
	d, f := startTestService(t, db, "Relay")
	waitUntil(t, "the first tick is over", func() bool { return !d.Jobs()[0].LastRun.At.IsZero() })
	session := id.New(id.Session, time.Now())
	refused := addOutboxEvent(t, db, session)
	addOutboxEvent(t, db, session) // waits behind it
	execSQL(t, db, `UPDATE bff_consumer.outbox SET attempts = 1, due_at = now() + interval '1 hour' WHERE id = $1`, refused)
	parked := addOutboxEvent(t, db, id.New(id.Session, time.Now()))
	execSQL(t, db, `UPDATE bff_consumer.outbox SET parked_at = now() WHERE id = $1`, parked)
	if n, err := d.outbox.countDue(t.Context()); err != nil || n != 0 {
		t.Errorf("%d due, %v", n, err)
	}
	due := addOutboxEvent(t, db, id.New(id.Session, time.Now()))
	if n, err := d.outbox.countDue(t.Context()); err != nil || n != 1 {
		t.Errorf("%d due, %v", n, err)
	}
	runs := 0
	f.handle("Relay", func(w http.ResponseWriter, _ *http.Request) {
		if runs++; runs == 3 { // until then another one is at it
			execSQL(t, db, `UPDATE bff_consumer.outbox SET published_at = now() WHERE id = $1`, due)
		}
		fmt.Fprint(w, runs)
	})
	if got, err := d.RunJob(t.Context(), relayJob, false); err != nil || got.Status != scheduler.OK || got.Report != "3" {
		t.Errorf("%+v %v", got, err)
	}
	if got := f.receivedBy("Relay"); len(got) != 4 || got[3] != `{"once":true}` {
		t.Errorf("%v", got)
	}
	if got, err := d.RunJob(t.Context(), relayJob, true); err != nil || got.Status != scheduler.OK || f.receivedBy("Relay")[4] != `{"dryRun":true}` {
		t.Errorf("%+v %v", got, err)
	}
	addOutboxEvent(t, db, id.New(id.Session, time.Now()))
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if got, err := d.RunJob(impatient, relayJob, false); err == nil {
		t.Errorf("drained: %+v", got)
	}
}

func TestRunJob_RelayFailureIsReported(t *testing.T) {
	db := pgtest.New(t)
	d, f := startTestService(t, db, "Relay")
	f.handle("Relay", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no broker", 503) })
	if got, err := d.RunJob(t.Context(), relayJob, false); err != nil || got.Status != scheduler.Failed || got.Report != "no broker\n" {
		t.Errorf("%+v %v", got, err)
	}
	f.handle("Relay", nil)
	db.Close()
	if _, err := d.RunJob(t.Context(), relayJob, false); err == nil {
		t.Error("without the database")
	}
}
