package pubsub

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

// startPlatformEvents starts a broker and a dispatcher that pushes to f as the named function,
// until the test ends.
func startPlatformEvents(t *testing.T, function string, f *fakeFunction) *PlatformEvents {
	t.Helper()
	b := openTestBroker(t)
	events := NewPlatformEvents(b)
	d := b.StartDispatcher(map[string]string{function: f.URL}, testBackoff, events.RecordDelivery)
	t.Cleanup(d.Stop)
	return events
}

const tenantID = "tnt_01H8YN7Q2P7GZ4F8Y5CK4MV3DT"

func tenantSuspended(at string) PlatformEvent {
	return PlatformEvent{
		Subject: "melmastoon.tenant.suspended.v1",
		Payload: jsontext.Value(`{"tenantId": "` + tenantID + `", "reason": "billing", "suspendedAt": "` + at + `"}`),
	}
}

func TestPublish_BuildsProducerEnvelope(t *testing.T) {
	t.Parallel()
	f := newFakeFunction(t, respondWith(http.StatusOK))
	events := startPlatformEvents(t, "TenantSuspended", f)
	eventID, messageID, err := events.Publish(t.Context(), tenantSuspended("2026-04-23T09:14:22.041Z"))
	if err != nil || !id.Valid(id.Event, eventID) || messageID == "" {
		t.Fatalf("got event id %q, message id %q, error %v", eventID, messageID, err)
	}
	eventually(t, "the event is delivered", func() bool { return len(events.List()) == 1 && events.List()[0].State == Delivered })
	var got struct {
		Envelope map[string]any
		Payload  map[string]any
	}
	if err := json.Unmarshal(f.received()[0].Message.Data, &got); err != nil {
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
		t.Errorf("got %v, want all envelope members and the payload", got)
	}
	e := events.List()[0]
	if e.EventID != eventID || e.MessageID != messageID || e.Subscription != "bff-consumer.tenant.suspended.v1" || e.Attempts != 1 ||
		e.Outcome == nil || e.Outcome.Status != 200 || e.DeadLetter != "" {
		t.Errorf("got %+v, want one attempt with status 200", e)
	}
}

func TestPublish_RepeatDiffersOnlyInPublishedAt(t *testing.T) {
	t.Parallel()
	f := newFakeFunction(t, respondWith(http.StatusOK))
	events := startPlatformEvents(t, "TenantSuspended", f)
	first := tenantSuspended("2026-04-23T09:14:22.041Z")
	eventID, _, err := events.Publish(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	first.Envelope = map[string]jsontext.Value{"eventId": jsontext.Value(`"` + eventID + `"`)}
	if again, _, err := events.Publish(t.Context(), first); err != nil || again != eventID {
		t.Fatalf("got event id %q, error %v, want %q", again, err, eventID)
	}
	eventually(t, "both arrive", func() bool { return len(f.received()) == 2 })
	var both [2]map[string]map[string]any
	for i, push := range f.received() {
		if err := json.Unmarshal(push.Message.Data, &both[i]); err != nil {
			t.Fatal(err)
		}
		delete(both[i]["envelope"], "publishedAt")
	}
	if fmt.Sprint(both[0]) != fmt.Sprint(both[1]) {
		t.Errorf("events differ:\n%v\n%v", both[0], both[1])
	}
	older := tenantSuspended("never")
	older.Envelope = map[string]jsontext.Value{"occurredAt": jsontext.Value(`"2020-01-01T00:00:00.000Z"`), "producer": jsontext.Value(`7`)}
	envelope, err := buildEnvelope(older, time.Now())
	if err != nil || string(envelope["occurredAt"]) != `"2020-01-01T00:00:00.000Z"` || string(envelope["producer"]) != "7" {
		t.Errorf("got %s, error %v, want the given members", envelope, err)
	}
}

func TestEvents_ShowDeadLetteredEvent(t *testing.T) {
	t.Parallel()
	f := newFakeFunction(t, func(_ int, _ pushRequest, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusInternalServerError)
		io.WriteString(w, `{"code":"INTERNAL"}`)
	})
	events := startPlatformEvents(t, "ThemePublished", f)
	broken := "{"
	if eventID, _, err := events.Publish(t.Context(), PlatformEvent{Subject: "melmastoon.theme.published.v1", Raw: &broken}); err != nil || eventID != "" {
		t.Fatalf("got event id %q, error %v, want no id", eventID, err)
	}
	eventually(t, "the event is dead-lettered", func() bool { return events.List()[0].State == DeadLettered })
	e := events.List()[0]
	if e.Attempts != 5 || e.DeadLetter != "bff-consumer.theme.published.v1.dlq" || e.Outcome.Status != 500 ||
		fmt.Sprintf("%s", e.Outcome.Body) != `{"code":"INTERNAL"}` || string(f.received()[4].Message.Data) != "{" {
		t.Errorf("got %+v with outcome %+v, want dead-lettered after 5 attempts", e, e.Outcome)
	}
}

func TestEventTracker_EvictsOldest(t *testing.T) {
	t.Parallel()
	p := newEventTracker()
	for n := range maxTrackedEvents + 3 {
		p.recordPublished(fmt.Sprint(n), "s", "", time.Now())
	}
	if len(p.order) != maxTrackedEvents || len(p.byID) != maxTrackedEvents || p.order[0] != "3" {
		t.Errorf("got %d and %d events, oldest %s, want %d, oldest 3", len(p.order), len(p.byID), p.order[0], maxTrackedEvents)
	}
}
