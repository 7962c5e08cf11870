package functest

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/shared/pubsubpush"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func TestHarnessPush_DeliversMessage(t *testing.T) {
	t.Parallel()
	h := &Harness{T: t, Log: &Log{}, functions: map[string]*web.Function{}}
	h.UseInternalAPI()
	h.APIDocument = "" // the handler below does not answer as described
	var got pubsubpush.Message
	h.MountInternal("POST /internal/events/tenant-suspended", time.Second, func(w http.ResponseWriter, r *http.Request) (err error) {
		got, err = pubsubpush.Decode(r)
		return err
	})
	published := time.Date(2026, 11, 20, 12, 0, 0, 123456000, time.UTC)
	e := PlatformEvent{ID: "evt_1", Subject: "melmastoon.tenant.suspended.v1", Payload: `{"tenantId":"tnt_1"}`}
	for name, c := range map[string]struct {
		message PushMessage
		want    pubsubpush.Message
	}{
		"defaults": {PushMessage{}, pubsubpush.Message{ID: "1", Attributes: map[string]string{}, Subscription: "projects/p/subscriptions/s", Attempt: 1, Published: published}},
		"event": {e.Message(), pubsubpush.Message{
			ID: "m-evt_1", Data: []byte(e.Data()), Attributes: map[string]string{}, Subscription: "projects/p/subscriptions/s", Attempt: 2, Published: published,
		}},
		"all fields": {
			PushMessage{Data: "x", ID: "7", Attributes: map[string]string{"a": "b"}, OrderingKey: "k", PublishTime: published.Add(time.Hour), Subscription: "s", DeliveryAttempt: 3},
			pubsubpush.Message{ID: "7", Data: []byte("x"), Attributes: map[string]string{"a": "b"}, OrderingKey: "k", Published: published.Add(time.Hour), Subscription: "s", Attempt: 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h.Push("/internal/events/tenant-suspended", c.message)
			got.Body = nil
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("decoded message (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNewIssuer_ServesTheKeySetOfItsTokens(t *testing.T) {
	t.Parallel()
	i := NewIssuer(t)
	if got := i.Authorization("https://a.example", "a@p.iam.gserviceaccount.com", time.Now()); !strings.HasPrefix(got, "Bearer ey") {
		t.Errorf("Authorization is %.20q, want a bearer token", got)
	}
	response, err := http.Get(i.KeysURL)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("key set has status %d, want 200", response.StatusCode)
	}
}

func TestHarness_CountsInboxAndOutboxRows(t *testing.T) {
	t.Parallel()
	h := New(t)
	if h.IsProcessed("evt_1") || h.Quarantined() != 0 || h.PendingEvents() != 0 {
		t.Error("empty tables have rows")
	}
	if got := QueryValue[int](h, "SELECT $1::int", 7); got != 7 {
		t.Errorf("QueryValue returns %d, want 7", got)
	}
}

func TestLog_DecodesRecords(t *testing.T) {
	t.Parallel()
	l := &Log{}
	h := &Harness{T: t, Log: l, functions: map[string]*web.Function{}}
	h.Mount("GET /x", func(http.ResponseWriter, *http.Request) error { return nil })
	h.Do("GET", "/x", "", "")
	h.Do("POST", "/x", "", "")
	if n := len(l.Records(t)); n != 2 {
		t.Fatalf("%d records, want 2", n)
	}
	if request, _ := l.Last(t)["httpRequest"].(map[string]any); request["requestMethod"] != "POST" {
		t.Errorf("last record is %v, want the one of POST", l.Last(t))
	}
}
