package adminapi

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/local/pubsub"
	"melmastoon.ghasi.io/bff-consumer/local/scheduler"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

// messaging is the Pub/Sub side of a local system.
type messaging struct {
	broker    *pubsub.Broker
	events    *pubsub.PlatformEvents
	telemetry *pubsub.TelemetryLog
	jobs      *scheduler.Scheduler
	db        *pgxpool.Pool
}

// startMessaging starts a messaging whose functions all respond with a status and a body, until the
// test ends. The job sweep-choices has no function.
func startMessaging(t *testing.T, status *atomic.Int32, body string) *messaging {
	t.Helper()
	functions := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(status.Load()))
		fmt.Fprint(w, body)
	}))
	t.Cleanup(functions.Close)
	b, err := pubsub.OpenBroker(t.Context(), pubsub.BrokerOptions{Project: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	m := &messaging{broker: b, events: pubsub.NewPlatformEvents(b), db: pgtest.New(t)}
	if m.jobs, err = scheduler.New(b, m.db); err != nil {
		t.Fatal(err)
	}
	m.telemetry = b.CollectTelemetry()
	t.Cleanup(m.telemetry.Stop)
	endpoints := map[string]string{}
	for _, s := range pubsub.PushSubscriptions() {
		endpoints[s.Function] = functions.URL
	}
	delete(endpoints, "SweepChoices")
	dispatcher := b.StartDispatcher(endpoints, pubsub.Backoff{Min: time.Millisecond, Max: time.Millisecond}, func(d pubsub.Delivery) {
		m.events.RecordDelivery(d)
		m.jobs.RecordDelivery(d)
	})
	t.Cleanup(dispatcher.Stop)
	m.jobs.Start(dispatcher)
	t.Cleanup(m.jobs.Stop)
	return m
}

func newStatus(status int32) *atomic.Int32 {
	var s atomic.Int32
	s.Store(status)
	return &s
}

// objects returns the objects of a list in a response.
func objects(answer map[string]any, list string) (all []map[string]any) {
	entries, _ := answer[list].([]any)
	for _, entry := range entries {
		all = append(all, entry.(map[string]any))
	}
	return all
}

func TestTelemetry_PagesWithCursor(t *testing.T) {
	t.Parallel()
	m := startMessaging(t, newStatus(200), "{}")
	b := newHarness(t, m)
	read := func(query string) (ids []string, cursor string) {
		t.Helper()
		code, answer := b.call(t, "GET", "/_local/telemetry?"+query, "")
		if code != 200 || answer["missed"] != nil {
			t.Fatalf("%d %v", code, answer)
		}
		for _, m := range objects(answer, "messages") {
			ids = append(ids, m["id"].(string))
		}
		return ids, answer["cursor"].(string)
	}
	send := func(subject, eventID, data string) {
		t.Helper()
		if _, err := m.broker.Publish(t.Context(), subject, []byte(data), map[string]string{"eventId": eventID, "subject": subject}); err != nil {
			t.Fatal(err)
		}
	}
	if ids, cursor := read(""); len(ids) != 0 || cursor != "0" {
		t.Errorf("no messages: got %v, cursor %s, want none, cursor 0", ids, cursor)
	}
	const locale, started = "melmastoon.bff.consumer.locale.changed.v1", "melmastoon.bff.consumer.session.started.v1"
	send(started, "evt_1", `{"envelope": {"eventId": "evt_1"}, "payload": {"a": 1}}`)
	send(locale, "evt_2", `{}`)
	send(locale, "evt_2", `{}`) // the broker keeps duplicates
	ids, cursor := read("")
	if fmt.Sprint(ids) != "[evt_1 evt_2 evt_2]" {
		t.Errorf("got %v, want [evt_1 evt_2 evt_2]", ids)
	}
	if again, next := read("since=" + cursor); len(again) != 0 || next != cursor {
		t.Errorf("after the last message: got %v, cursor %s, want none, cursor %s", again, next, cursor)
	}
	send(started, "evt_3", `no JSON`)
	if ids, _ := read("since=" + cursor); fmt.Sprint(ids) != "[evt_3]" {
		t.Errorf("got %v, want [evt_3]", ids)
	}
	for _, subject := range []string{locale, "locale.changed.v1"} {
		if ids, next := read("subject=" + subject); len(ids) != 2 || next != "4" {
			t.Errorf("%s: %v %s", subject, ids, next)
		}
	}
	// a typo must not result in an empty list
	code, answer := b.call(t, "GET", "/_local/telemetry?subject=locale.changed", "")
	if wrong := objects(answer, "errors"); code != 422 || wrong[0]["field"] != "subject" || !strings.Contains(wrong[0]["detail"].(string), locale) {
		t.Errorf("unknown subject: got %d %v, want 422 with the subjects", code, answer)
	}
	_, answer = b.call(t, "GET", "/_local/telemetry", "")
	got := objects(answer, "messages")
	if got[0]["data"].(map[string]any)["payload"].(map[string]any)["a"] != 1.0 || got[0]["subject"] != started || got[0]["messageId"] == "" ||
		got[0]["attributes"].(map[string]any)["subject"] != started || got[3]["data"] != nil || got[3]["raw"] != "bm8gSlNPTg==" {
		t.Errorf("messages with JSON data and with other data: got %v", got)
	}
}

func TestTelemetry_ReturnsAtMost1000Messages(t *testing.T) {
	t.Parallel()
	m := startMessaging(t, newStatus(200), "{}")
	b := newHarness(t, m)
	for range maxMessages + 1 {
		if _, err := m.broker.Publish(t.Context(), pubsub.TelemetrySubscriptions()[0].Topic, []byte("{}"), nil); err != nil {
			t.Fatal(err)
		}
	}
	_, answer := b.call(t, "GET", "/_local/telemetry", "")
	if n := len(objects(answer, "messages")); n != maxMessages || answer["cursor"] != "1000" {
		t.Errorf("first page: got %d messages, cursor %v, want 1000, cursor 1000", n, answer["cursor"])
	}
	_, answer = b.call(t, "GET", "/_local/telemetry?since=1000", "")
	if n := len(objects(answer, "messages")); n != 1 || answer["cursor"] != "1001" {
		t.Errorf("second page: got %d messages, cursor %v, want 1, cursor 1001", n, answer["cursor"])
	}
	m.telemetry.Stop()
	req, gone := context.WithCancel(t.Context())
	gone()
	rec := httptest.NewRecorder()
	b.ServeHTTP(rec, httptest.NewRequest("GET", "/_local/telemetry", nil).WithContext(req))
	if rec.Code != 503 {
		t.Errorf("with a stopped collector: got %d, want 503", rec.Code)
	}
}

func TestEvents_PublishAndTrack(t *testing.T) {
	t.Parallel()
	status := newStatus(200)
	m := startMessaging(t, status, `{"outcome":"applied"}`)
	b := newHarness(t, m)
	payload := `{"tenantId":"tnt_01H8YN7Q2P7GZ4F8Y5CK4MV3DT","publishedAt":"2026-04-23T09:14:22.041Z"}`
	publish := func(body string) (eventID string) {
		t.Helper()
		code, answer := b.call(t, "POST", "/_local/events", body)
		eventID, _ = answer["eventId"].(string)
		if code != 200 || answer["messageId"] == nil {
			t.Fatalf("%d %v", code, answer)
		}
		return eventID
	}
	became := func(eventID, state string) map[string]any {
		t.Helper()
		for range 2000 {
			_, answer := b.call(t, "GET", "/_local/events?subject=melmastoon.theme.published.v1&eventId="+eventID, "")
			if all := objects(answer, "events"); len(all) == 1 && all[0]["state"] == state {
				return all[0]
			}
			select {
			case <-time.After(5 * time.Millisecond):
			case <-t.Context().Done():
			}
		}
		t.Fatalf("%s did not reach the state %s", eventID, state)
		return nil
	}
	taken := publish(`{"subject":"melmastoon.theme.published.v1","payload":` + payload + `}`)
	e := became(taken, "delivered")
	if outcome := e["outcome"].(map[string]any); outcome["status"] != 200.0 || outcome["said"].(map[string]any)["outcome"] != "applied" || e["attempts"] != 1.0 {
		t.Errorf("got %v, want delivered in one attempt with status 200", e)
	}
	status.Store(500)
	const chosen = "evt_01H8YN7QV4D8KZ4F8Y5CK4MV3D"
	if id := publish(`{"subject":"melmastoon.theme.published.v1","payload":` + payload + `,"envelope":{"eventId":"` + chosen + `"}}`); id != chosen {
		t.Errorf("got event id %q", id)
	}
	if e := became(chosen, "dead-lettered"); e["attempts"] != 5.0 || e["deadLetterTopic"] != "bff-consumer.theme.published.v1.dlq" {
		t.Errorf("got %v, want dead-lettered after 5 attempts", e)
	}
	if id := publish(`{"subject":"melmastoon.theme.published.v1","raw":"{"}`); id != "" {
		t.Errorf("got event id %q", id)
	}
	if _, answer := b.call(t, "GET", "/_local/events", ""); len(objects(answer, "events")) != 3 {
		t.Errorf("got %v, want 3 events", answer)
	}
	for body, field := range map[string]string{
		`{"subject":"melmastoon.brew.started.v1","payload":{}}`: "subject",
		`{"payload":{}}`: "subject",
		`{"subject":"melmastoon.theme.published.v1"}`:                                  "payload",
		`{"subject":"melmastoon.theme.published.v1","payload":[]}`:                     "payload",
		`{"subject":"melmastoon.theme.published.v1","payload":{},"raw":""}`:            "raw",
		`{"subject":"melmastoon.theme.published.v1","payload":{},"envelope":{"x":1}}`:  "envelope.x",
		`{"subject":"melmastoon.theme.published.v1","payload":{},"envelope":7}`:        "envelope",
		`{"subject":"melmastoon.theme.published.v1","payload":{},"eventId":"evt_..."}`: "eventId",
	} {
		code, answer := b.call(t, "POST", "/_local/events", body)
		if wrong := objects(answer, "errors"); code != 422 || len(wrong) != 1 || wrong[0]["field"] != field {
			t.Errorf("%s: got %d %v, want 422 for %s", body, code, answer, field)
		}
	}
	_, answer := b.call(t, "POST", "/_local/events", `{"subject":"x","payload":{}}`)
	detail := objects(answer, "errors")[0]["detail"].(string)
	for _, subject := range pubsub.PlatformSubjects() {
		if !strings.Contains(detail, subject) {
			t.Errorf("detail %q lacks the subject %s", detail, subject)
		}
	}
}

func TestJobs_ListAndRun(t *testing.T) {
	t.Parallel()
	status := newStatus(200)
	m := startMessaging(t, status, `{"removed":3}`)
	b := newHarness(t, m)
	if code, answer := b.call(t, "POST", "/_local/jobs/sweep-inbox", ""); code != 200 || answer["job"] != "sweep-inbox" ||
		answer["status"] != "ok" || answer["report"].(map[string]any)["removed"] != 3.0 {
		t.Errorf("sweep-inbox: got %d %v, want 200 ok", code, answer)
	}
	if code, answer := b.call(t, "POST", "/_local/jobs/relay", "{}"); code != 200 || answer["report"] == nil {
		t.Errorf("relay: got %d %v, want 200 with a report", code, answer)
	}
	status.Store(503)
	if code, answer := b.call(t, "POST", "/_local/jobs/sweep-outbox", `{"dryRun":true}`); code != 502 || answer["code"] != "JOB_FAILED" ||
		answer["status"] != 502.0 || answer["job"] != "sweep-outbox" || answer["report"].(map[string]any)["removed"] != 3.0 {
		t.Errorf("sweep-outbox: got %d %v, want 502 JOB_FAILED", code, answer)
	}
	for request, want := range map[string]int{
		"brew": 404, "sweep-choices": 404, `sweep-wishlist {`: 400, `sweep-wishlist {"dry":true}`: 422,
		`sweep-wishlist null`: 422, `sweep-wishlist {"dryRun":null}`: 422, // must not start a real run
	} {
		path, body, _ := strings.Cut(request, " ")
		if code, answer := b.call(t, "POST", "/_local/jobs/"+path, body); code != want {
			t.Errorf("%s: got %d %v, want %d", request, code, answer, want)
		}
	}
	_, answer := b.call(t, "GET", "/_local/jobs", "")
	jobs := objects(answer, "jobs")
	if len(jobs) != len(pubsub.Jobs()) || jobs[0]["job"] != "relay" || jobs[0]["cadence"] != "* * * * *" || jobs[0]["startedAt"] == nil {
		t.Fatalf("got %v, want %d jobs, relay first and started", jobs, len(pubsub.Jobs()))
	}
	for _, j := range jobs {
		last, _ := j["lastRun"].(map[string]any)
		switch want := map[any]any{"sweep-inbox": "ok", "sweep-outbox": "failed"}[j["job"]]; {
		case j["job"] == "relay":
		case want == nil && last != nil, want != nil && (last == nil || last["status"] != want || last["at"] == nil || last["report"] == nil):
			t.Errorf("got %v, want status %v", j, want)
		}
	}
}
