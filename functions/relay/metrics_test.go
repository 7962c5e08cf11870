package relay

import (
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/otlptest"
)

func TestRelayServe_ExportsMetricsWithoutRowData(t *testing.T) {
	collector := otlptest.Open(t)
	h := newHarness(t)
	session := newSession()
	h.addEvents(newEvents(session, "lc")...)
	h.addEvents(newEvents(newSession(), "l")...)
	h.Exec(`UPDATE bff_consumer.outbox SET parked_at = now() WHERE id = (SELECT max(id) FROM bff_consumer.outbox)`)
	before := float64(time.Now().Add(-time.Minute).Unix())
	h.trigger(h.newRelay(), `{"once":true}`)
	for name, want := range map[string]float64{"bff.outbox.published": 2, "bff.outbox.depth": 0, "bff.outbox.parked": 1} {
		if n := collector.Metric(name); n != want {
			t.Errorf("%s: got %v, want %v", name, n, want)
		}
	}
	if at := collector.Metric("bff.job.last_success"); at < before {
		t.Errorf("last success: got %v, want at least %v", at, before)
	}
	published := 0
	for _, s := range collector.Spans("") {
		if strings.HasPrefix(s.Name, "publish melmastoon.") && otlptest.Attribute(s, "messaging.destination.name") != "" {
			published++
		}
	}
	if published == 0 {
		t.Error("got no span of a publish request, want at least 1")
	}
	collector.AssertAbsent(t, session, "gms_", "WHERE", "payload", "eventId", ":bff-consumer:")
}

func TestRelayServe_DryRunRecordsNoSuccess(t *testing.T) {
	collector := otlptest.Open(t)
	h := newHarness(t)
	h.trigger(h.newRelay(), `{"dryRun":true}`)
	if at := collector.Metric("bff.job.last_success"); at != 0 || collector.Requests() == 0 {
		t.Errorf("got %d exports and a last success at %v, want exports without a success", collector.Requests(), at)
	}
}
