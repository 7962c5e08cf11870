package relay

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
)

const relayPath = "/internal/jobs/relay"

// mount serves r at its path.
func (h *harness) mount(r *Relay) {
	h.T.Helper()
	h.MountInternal("POST "+relayPath, time.Minute, r.Serve)
}

// trigger delivers a tick with options to r and returns the response, checked against the API
// document.
func (h *harness) trigger(r *Relay, options string) *functest.Result {
	h.T.Helper()
	h.mount(r)
	return h.Push(relayPath, functest.PushMessage{Data: options, Subscription: "projects/p/subscriptions/bff-consumer.jobs.relay"})
}

func TestRelayServe_ReturnsAndLogsReport(t *testing.T) {
	h := newHarness(t)
	warnings := captureLogs(t)
	h.addEvents(newEvents(newSession(), "lc")...)
	res := h.trigger(h.newRelay(), `{"once":true}`)
	var report Report
	res.Decode(t, &report)
	if res.StatusCode != http.StatusOK || report.Published != 2 {
		t.Errorf("got %d %s, want 200 and 2 published rows", res.StatusCode, res.Text)
	}
	var record struct{ Relay Report }
	if err := json.Unmarshal([]byte(h.Log.String()), &record); err != nil {
		t.Fatal(err)
	}
	expectReport(t, record.Relay, report)
	if strings.Contains(warnings.String(), "undelivered events") {
		t.Errorf("got a warning without late or parked events: %s", warnings)
	}
	short := h.newRelay(func(e *environment) { e.Run = time.Millisecond })
	if res := h.trigger(short, `{}`); res.StatusCode != http.StatusOK {
		t.Errorf("short run: got %d %s, want 200", res.StatusCode, res.Text)
	}
}

func TestRelayServe_WarnsOfLateAndParkedEvents(t *testing.T) {
	for name, change := range map[string]string{
		"late":   `UPDATE bff_consumer.outbox SET created_at = now() - interval '400 seconds'`,
		"parked": `UPDATE bff_consumer.outbox SET parked_at = now()`,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			warnings := captureLogs(t)
			h.addEvents(newEvents(newSession(), "l")...)
			h.Exec(change)
			h.Advance(time.Second)
			h.trigger(h.newRelay(), `{"dryRun":true}`)
			if n := strings.Count(warnings.String(), "outbox: undelivered events"); n != 1 || !strings.Contains(warnings.String(), `"level":"WARN"`) {
				t.Errorf("got %d warnings, want 1: %s", n, warnings)
			}
		})
	}
}

func TestRelayServe_ReportsLastOutage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.broker.SetBehavior(func(pubsubtest.Request) pubsubtest.Behavior {
		return pubsubtest.Behavior{RejectCode: codes.PermissionDenied}
	})
	h.addEvents(newEvents(newSession(), "l")...)
	res := h.trigger(h.newRelay(), `{"once":true}`)
	if want := `"lastOutage":"melmastoon.bff.consumer.locale.changed.v1: PermissionDenied"`; !strings.Contains(res.Text, want) {
		t.Errorf("got %s, want %s in it", res.Text, want)
	}
}

func TestRelayServe_RejectsMalformedRequest(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	ids := h.addEvents(newEvents(newSession(), "l")...)
	h.mount(h.newRelay())
	for _, body := range []string{``, `x`, `{}`} {
		if res := h.Do("POST", relayPath, "", body); res.StatusCode != http.StatusBadRequest {
			t.Errorf("body %q: got %d %s, want 400", body, res.StatusCode, res.Text)
		}
	}
	for _, options := range []string{`nonsense`, `{"once":"yes"}`, `null`, ` null`,
		`{"dryRun":null}`, `{"once":true,"dryRun":null}`, `{"dryrun":true}`, `{"dryRun":true,"force":true}`} {
		if res := h.Push(relayPath, functest.PushMessage{Data: options}); res.StatusCode != http.StatusBadRequest {
			t.Errorf("options %q: got %d %s, want 400", options, res.StatusCode, res.Text)
		}
	}
	if n := h.PendingEvents(); n != len(ids) {
		t.Errorf("got %d pending rows, want %d: a malformed request was acted on", n, len(ids))
	}
}

func TestRelayServe_FailsWhenReportCannotBeRead(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	if res := h.trigger(h.newRelay(withoutPostgres), `{"once":true}`); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("got %d %s, want 503", res.StatusCode, res.Text)
	}
}

// withoutPostgres configures a relay for a database that does not answer.
func withoutPostgres(e *environment) { e.Postgres.URL = "postgres://nobody@127.0.0.1:1/none" }
