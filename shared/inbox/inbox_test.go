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
	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/push"
)

const subject = "melmastoon.theme.published.v1"

// data is an event with that payload.
func data(eventID, payload string) string {
	return fmt.Sprintf(`{"envelope":{"eventId":%q,"subject":%q,"publishedAt":"2026-11-20T12:00:00Z"},"payload":%s}`, eventID, subject, payload)
}

func about(tenant string) string { return fmt.Sprintf(`{"tenantId":%q}`, tenant) }

// deliver is one delivery of an event.
func deliver(text string) *http.Request {
	r := httptest.NewRequest("POST", "/", strings.NewReader(text))
	for name, value := range map[string]string{"Id": "m", "Specversion": "1.0", "Source": "s", "Type": "x"} {
		r.Header.Set("Ce-"+name, value)
	}
	return r
}

// desk is an inbox whose work is counted.
type desk struct {
	*Inbox
	db             *pgxpool.Pool
	recorded, told atomic.Int64
	record, tell   error
}

func newDesk(t *testing.T) *desk {
	db := pgtest.New(t)
	return &desk{Inbox: New(db), db: db}
}

func (d *desk) read([]byte) (Work, error) {
	return Work{
		Record: func(context.Context, pgx.Tx) error { d.recorded.Add(1); return d.record },
		Tell:   func(context.Context) (int, error) { d.told.Add(1); return 3, d.tell },
	}, nil
}

func (d *desk) rows(t *testing.T, table string) (n int) {
	t.Helper()
	if err := d.db.QueryRow(t.Context(), `SELECT count(*) FROM bff_consumer.`+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func newEvent() string {
	return data(id.New(id.Event, time.Now()), about(id.New(id.Tenant, time.Now())))
}

func TestAnEventTakesEffectOnce(t *testing.T) {
	d, e := newDesk(t), newEvent()
	for _, want := range []Outcome{Done, Again, Again} {
		report, err := d.Receive(deliver(e), subject, d.read)
		if err != nil || report.Outcome != want {
			t.Errorf("%+v %v, want %s", report, err, want)
		}
	}
	if d.recorded.Load() != 1 || d.told.Load() != 1 {
		t.Errorf("recorded %d times, told %d times", d.recorded.Load(), d.told.Load())
	}
}

func TestOfManyAtOnceOneRecordsAndNoneIsLost(t *testing.T) {
	d, e := newDesk(t), newEvent()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if report, err := d.Receive(deliver(e), subject, d.read); err != nil || report.Outcome == Parked {
				t.Errorf("%+v %v", report, err)
			}
		})
	}
	all.Wait()
	if d.recorded.Load() != 1 || d.told.Load() < 1 || d.rows(t, "inbox WHERE processed_at IS NOT NULL") != 1 {
		t.Errorf("recorded %d times, told %d times", d.recorded.Load(), d.told.Load())
	}
}

func TestAnEffectThatFailsIsNotNoted(t *testing.T) {
	d, e := newDesk(t), newEvent()
	d.record = errors.New("the disk is full")
	if _, err := d.Receive(deliver(e), subject, d.read); !errors.Is(err, d.record) || d.rows(t, "inbox") != 0 || d.told.Load() != 0 {
		t.Errorf("%v", err)
	}
	d.record = nil
	if report, err := d.Receive(deliver(e), subject, d.read); err != nil || report.Outcome != Done {
		t.Errorf("%+v %v", report, err)
	}
}

func TestWhatWasNotToldIsToldByTheNextDelivery(t *testing.T) {
	d, e := newDesk(t), newEvent()
	d.tell = errors.New("no answer")
	for range 2 {
		_, err := d.Receive(deliver(e), subject, d.read)
		if p := problem.From(err); p.Kind != problem.UpstreamUnavailable || !errors.Is(err, d.tell) {
			t.Errorf("%v", err)
		}
	}
	d.tell = nil
	report, err := d.Receive(deliver(e), subject, d.read)
	if err != nil || report.Outcome != Done || report.Removed != 3 || d.recorded.Load() != 1 || d.told.Load() != 3 {
		t.Errorf("%+v %v, recorded %d times, told %d times", report, err, d.recorded.Load(), d.told.Load())
	}
}

func TestTheSameEventMayBeWrittenInAnotherWay(t *testing.T) {
	d := newDesk(t)
	event, tenant := id.New(id.Event, time.Now()), id.New(id.Tenant, time.Now())
	first := data(event, fmt.Sprintf(`{"tenantId":%q,"themeId":"a"}`, tenant))
	for name, c := range map[string]struct {
		text string
		want Outcome
	}{
		"published again": {strings.Replace(first, "12:00:00Z", "12:00:09Z", 1), Again},
		"never published": {strings.Replace(first, `,"publishedAt":"2026-11-20T12:00:00Z"`, "", 1), Again},
		"in other order":  {data(event, fmt.Sprintf(`{ "themeId" : "\u0061", "tenantId":%q}`, tenant)), Again},
		"another theme":   {strings.Replace(first, `"a"`, `"b"`, 1), Parked},
		"one field more":  {strings.Replace(first, `"a"`, `"a","more":1`, 1), Parked},
		"another name":    {strings.Replace(first, `"publishedAt"`, `"occurredAt"`, 1), Parked},
	} {
		if _, err := d.Receive(deliver(first), subject, d.read); err != nil {
			t.Fatal(err)
		}
		report, err := d.Receive(deliver(c.text), subject, d.read)
		if err != nil || report.Outcome != c.want || report.Conflict != (c.want == Parked) {
			t.Errorf("%s: %+v %v", name, report, err)
		}
	}
	if d.recorded.Load() != 1 {
		t.Errorf("recorded %d times", d.recorded.Load())
	}
}

func TestWorkThatCannotBeReadIsParked(t *testing.T) {
	d := newDesk(t)
	report, err := d.Receive(deliver(newEvent()), subject, func([]byte) (Work, error) { return Work{}, errors.New("no such day") })
	if err != nil || report.Outcome != Parked || report.Reason != "no such day" || d.rows(t, "inbox") != 0 || d.rows(t, "inbox_parked") != 1 {
		t.Errorf("%+v %v", report, err)
	}
}

func TestAnythingIsParked(t *testing.T) {
	d := newDesk(t)
	for _, m := range []push.Message{
		{}, {ID: "1"}, {ID: "1", Body: []byte("x")}, {ID: "\x00"}, {ID: "\xff"}, {ID: strings.Repeat("i", 1<<20), Body: make([]byte, 1<<20)},
	} {
		report, err := d.park(t.Context(), subject, &m, Report{Reason: strings.Repeat("\x00ü\xff", 400)})
		if err != nil || report.Outcome != Parked || len(report.Reason) > maxReason {
			t.Errorf("%.20q: %v", m.ID, err)
		}
	}
	if n := d.rows(t, "inbox_parked"); n != 6 { // two of one id that say different things are two
		t.Errorf("%d rows", n)
	}
}

func TestEverySchemaAcceptsItsExampleAndMore(t *testing.T) {
	all, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	if len(examples) != len(all) {
		t.Errorf("%d examples of %d subjects", len(examples), len(all))
	}
	for _, example := range examples {
		content, err := os.ReadFile(example)
		if err != nil {
			t.Fatal(err)
		}
		of := strings.TrimSuffix(filepath.Base(example), ".json")
		e, err := parse(of, content)
		if err != nil || !id.Valid(id.Event, e.ID) {
			t.Errorf("%s: %+v %v", of, e, err)
		}
		more := strings.Replace(string(content), `"payload": {`, `"new": 1, "payload": {"newer": [1],`, 1)
		if _, err := parse(of, []byte(more)); err != nil || more == string(content) {
			t.Errorf("%s with more fields: %v", of, err)
		}
		var whole map[string]map[string]any
		if err := json.Unmarshal(content, &whole); err != nil {
			t.Fatal(err)
		}
		for field := range whole["payload"] {
			whole["payload"][field] = []int{}
			broken, _ := json.Marshal(whole)
			if _, err := parse(of, broken); err == nil || !strings.Contains(err.Error(), "payload."+field) {
				t.Errorf("%s with a list for %s: %v", of, field, err)
			}
			delete(whole["payload"], field)
		}
	}
	if err := check("melmastoon.nobody.knows.v1", []byte("{}")); err == nil {
		t.Error("an unknown subject is checked")
	}
}

func TestWhatIsParkedIsNamedIfItHasAName(t *testing.T) {
	d := newDesk(t)
	event := id.New(id.Event, time.Now())
	for name, c := range map[string]struct{ data, want string }{
		"a wrong payload":      {data(event, `{"tenantId":"tnt_1"}`), event},
		"of another subject":   {strings.Replace(data(event, about("a")), subject, "melmastoon.other.v1", 1), event},
		"an id that is no id":  {data("guest@example.org", about("a")), ""},
		"no envelope":          {`{"payload":{}}`, ""},
		"nothing that is JSON": {"guest", ""},
	} {
		report, err := d.Receive(deliver(c.data), subject, d.read)
		if err != nil || report.Outcome != Parked || report.EventID != c.want {
			t.Errorf("%s: %+v %v, want %q", name, report, err, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(newEvent()))
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
