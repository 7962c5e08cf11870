package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/pubsubpush"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

const subject = "melmastoon.theme.published.v1"

// eventJSON returns an event with a payload.
func eventJSON(eventID, payload string) string {
	return fmt.Sprintf(`{"envelope":{"eventId":%q,"subject":%q,"publishedAt":"2026-11-20T12:00:00Z"},"payload":%s}`, eventID, subject, payload)
}

func tenantPayload(tenant string) string { return fmt.Sprintf(`{"tenantId":%q}`, tenant) }

// newDelivery returns a delivery of an event as a binary CloudEvent.
func newDelivery(text string) *http.Request {
	r := httptest.NewRequest("POST", "/", strings.NewReader(text))
	for name, value := range map[string]string{"Id": "m", "Specversion": "1.0", "Source": "s", "Type": "x"} {
		r.Header.Set("Ce-"+name, value)
	}
	return r
}

// countingInbox is an inbox with an effect that counts its calls.
type countingInbox struct {
	*Inbox
	db                          *pgxpool.Pool
	inTxCalls, afterCommitCalls atomic.Int64
	inTxErr, afterCommitErr     error
}

func newCountingInbox(t *testing.T) *countingInbox {
	db := pgtest.New(t)
	return &countingInbox{Inbox: New(db), db: db}
}

func (d *countingInbox) effect([]byte) (Effect, error) {
	return Effect{
		InTx:        func(context.Context, pgx.Tx) error { d.inTxCalls.Add(1); return d.inTxErr },
		AfterCommit: func(context.Context) (int, error) { d.afterCommitCalls.Add(1); return 3, d.afterCommitErr },
	}, nil
}

func (d *countingInbox) countRows(t *testing.T, table string) (n int) {
	t.Helper()
	if err := d.db.QueryRow(t.Context(), `SELECT count(*) FROM bff_consumer.`+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func newEventJSON() string {
	return eventJSON(id.New(id.Event, time.Now()), tenantPayload(id.New(id.Tenant, time.Now())))
}

func TestInboxReceive_AppliesEventOnce(t *testing.T) {
	t.Parallel()
	d, e := newCountingInbox(t), newEventJSON()
	for _, want := range []Outcome{Processed, Duplicate, Duplicate} {
		report, err := d.Receive(newDelivery(e), subject, d.effect)
		if err != nil || report.Outcome != want {
			t.Errorf("got %+v, %v, want %s", report, err, want)
		}
	}
	if d.inTxCalls.Load() != 1 || d.afterCommitCalls.Load() != 1 {
		t.Errorf("got %d calls of InTx and %d of AfterCommit, want 1 of InTx", d.inTxCalls.Load(), d.afterCommitCalls.Load())
	}
}

func TestInboxReceive_ConcurrentDeliveriesApplyOnce(t *testing.T) {
	t.Parallel()
	d, e := newCountingInbox(t), newEventJSON()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if report, err := d.Receive(newDelivery(e), subject, d.effect); err != nil || report.Outcome == Quarantined {
				t.Errorf("got %+v, %v, want outcome done or again", report, err)
			}
		})
	}
	all.Wait()
	if d.inTxCalls.Load() != 1 || d.afterCommitCalls.Load() < 1 || d.countRows(t, "inbox WHERE processed_at IS NOT NULL") != 1 {
		t.Errorf("got %d calls of InTx and %d of AfterCommit, want 1 of InTx", d.inTxCalls.Load(), d.afterCommitCalls.Load())
	}
}

func TestInboxReceive_FailedTransactionRecordsNothing(t *testing.T) {
	t.Parallel()
	d, e := newCountingInbox(t), newEventJSON()
	d.inTxErr = errors.New("the disk is full")
	if _, err := d.Receive(newDelivery(e), subject, d.effect); !errors.Is(err, d.inTxErr) || d.countRows(t, "inbox") != 0 || d.afterCommitCalls.Load() != 0 {
		t.Errorf("got %v, want the error of InTx without a row or a call of AfterCommit", err)
	}
	d.inTxErr = nil
	if report, err := d.Receive(newDelivery(e), subject, d.effect); err != nil || report.Outcome != Processed {
		t.Errorf("got %+v, %v, want outcome done", report, err)
	}
}

func TestInboxReceive_RetriesAfterCommitOnNextDelivery(t *testing.T) {
	t.Parallel()
	d, e := newCountingInbox(t), newEventJSON()
	d.afterCommitErr = errors.New("no answer")
	for range 2 {
		_, err := d.Receive(newDelivery(e), subject, d.effect)
		if p := problem.FromError(err); p.Kind != problem.UpstreamUnavailable || !errors.Is(err, d.afterCommitErr) {
			t.Errorf("got %v, want status 503 and the error of AfterCommit", err)
		}
	}
	d.afterCommitErr = nil
	report, err := d.Receive(newDelivery(e), subject, d.effect)
	if err != nil || report.Outcome != Processed || report.Removed != 3 || d.inTxCalls.Load() != 1 || d.afterCommitCalls.Load() != 3 {
		t.Errorf("got %+v, %v, %d calls of InTx and %d of AfterCommit, want outcome done, 1 and 3", report, err, d.inTxCalls.Load(), d.afterCommitCalls.Load())
	}
}

func TestInboxReceive_ComparesEventsByContent(t *testing.T) {
	t.Parallel()
	d := newCountingInbox(t)
	event, tenant := id.New(id.Event, time.Now()), id.New(id.Tenant, time.Now())
	first := eventJSON(event, fmt.Sprintf(`{"tenantId":%q,"themeId":"a"}`, tenant))
	for name, c := range map[string]struct {
		text string
		want Outcome
	}{
		"another publishedAt": {strings.Replace(first, "12:00:00Z", "12:00:09Z", 1), Duplicate},
		"no publishedAt":      {strings.Replace(first, `,"publishedAt":"2026-11-20T12:00:00Z"`, "", 1), Duplicate},
		"another order":       {eventJSON(event, fmt.Sprintf(`{ "themeId" : "\u0061", "tenantId":%q}`, tenant)), Duplicate},
		"another theme":       {strings.Replace(first, `"a"`, `"b"`, 1), Quarantined},
		"an extra field":      {strings.Replace(first, `"a"`, `"a","more":1`, 1), Quarantined},
		"a renamed field":     {strings.Replace(first, `"publishedAt"`, `"occurredAt"`, 1), Quarantined},
	} {
		if _, err := d.Receive(newDelivery(first), subject, d.effect); err != nil {
			t.Fatal(err)
		}
		report, err := d.Receive(newDelivery(c.text), subject, d.effect)
		if err != nil || report.Outcome != c.want || report.Conflict != (c.want == Quarantined) {
			t.Errorf("%s: got %+v, %v, want %s", name, report, err, c.want)
		}
	}
	if d.inTxCalls.Load() != 1 {
		t.Errorf("got %d calls of InTx, want 1", d.inTxCalls.Load())
	}
}

func TestInboxReceive_QuarantinesUnreadablePayload(t *testing.T) {
	t.Parallel()
	d := newCountingInbox(t)
	report, err := d.Receive(newDelivery(newEventJSON()), subject, func([]byte) (Effect, error) { return Effect{}, errors.New("no such day") })
	if err != nil || report.Outcome != Quarantined || report.Reason != "no such day" || d.countRows(t, "inbox") != 0 || d.countRows(t, "inbox_parked") != 1 {
		t.Errorf("got %+v, %v, want the message quarantined once", report, err)
	}
}

func TestInboxQuarantine_AcceptsAnyMessage(t *testing.T) {
	t.Parallel()
	d := newCountingInbox(t)
	for _, m := range []pubsubpush.Message{
		{}, {ID: "1"}, {ID: "1", Body: []byte("x")}, {ID: "\x00"}, {ID: "\xff"}, {ID: strings.Repeat("i", 1<<20), Body: make([]byte, 1<<20)},
	} {
		report, err := d.quarantine(t.Context(), subject, &m, Report{Reason: strings.Repeat("\x00ü\xff", 400)})
		if err != nil || report.Outcome != Quarantined || len(report.Reason) > maxReason {
			t.Errorf("message %.20q: got %v, want it quarantined", m.ID, err)
		}
	}
	// two messages with the same id and different bodies have a row each
	if n := d.countRows(t, "inbox_parked"); n != 6 {
		t.Errorf("got %d rows, want 6", n)
	}
}

func TestInboxSchemas_AcceptExamplesAndUnknownFields(t *testing.T) {
	t.Parallel()
	all, err := loadSchemas()
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(examples) != len(all) {
		t.Errorf("got %d examples, want one for each of %d subjects", len(examples), len(all))
	}
	for _, example := range examples {
		content, err := os.ReadFile(example)
		if err != nil {
			t.Fatal(err)
		}
		subject := strings.TrimSuffix(filepath.Base(example), ".json")
		e, err := parse(subject, content)
		if err != nil || !id.Valid(id.Event, e.ID) {
			t.Errorf("%s: got %+v, %v, want a valid event", subject, e, err)
		}
		more := strings.Replace(string(content), `"payload": {`, `"new": 1, "payload": {"newer": [1],`, 1)
		if _, err := parse(subject, []byte(more)); err != nil || more == string(content) {
			t.Errorf("%s with unknown fields: got %v, want no error", subject, err)
		}
		var whole map[string]map[string]any
		if err := json.Unmarshal(content, &whole); err != nil {
			t.Fatal(err)
		}
		for field := range whole["payload"] {
			whole["payload"][field] = []int{}
			invalid, _ := json.Marshal(whole)
			if _, err := parse(subject, invalid); err == nil || !strings.Contains(err.Error(), "payload."+field) {
				t.Errorf("%s with a list for %s: got %v, want an error that names the field", subject, field, err)
			}
			delete(whole["payload"], field)
		}
	}
	if err := validate("melmastoon.unknown.v1", []byte("{}")); err == nil {
		t.Error("unknown subject: got no error")
	}
}

func TestInboxReceive_ReportsEventIDOfQuarantinedMessage(t *testing.T) {
	t.Parallel()
	d := newCountingInbox(t)
	event := id.New(id.Event, time.Now())
	for name, c := range map[string]struct{ data, want string }{
		"an invalid payload": {eventJSON(event, `{"tenantId":"tnt_1"}`), event},
		"another subject":    {strings.Replace(eventJSON(event, tenantPayload("a")), subject, "melmastoon.other.v1", 1), event},
		"an invalid id":      {eventJSON("guest@example.org", tenantPayload("a")), ""},
		"no envelope":        {`{"payload":{}}`, ""},
		"invalid JSON":       {"guest", ""},
	} {
		report, err := d.Receive(newDelivery(c.data), subject, d.effect)
		if err != nil || report.Outcome != Quarantined || report.EventID != c.want {
			t.Errorf("%s: got %+v, %v, want event id %q", name, report, err, c.want)
		}
	}
}

func FuzzParse_ReturnsEventOrReason(f *testing.F) {
	f.Add([]byte(newEventJSON()))
	f.Add([]byte(`{"envelope":{"eventId":"evt_01H8YN7QV4D8KZ4F8Y5CK4MV3D"},"payload":null}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := parse(subject, text)
		if err == nil && (!id.Valid(id.Event, e.ID) || e.Payload == nil) {
			t.Fatalf("%q: %+v", text, e)
		}
		if err != nil && (err.Error() == "" || strings.ContainsAny(err.Error(), "\n")) {
			t.Fatalf("%q: %q", text, err)
		}
	})
}
