package relay

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

// BenchmarkRelayRun_Backlog publishes a backlog. ./dev bench compares it with simple relays.
func BenchmarkRelayRun_Backlog(b *testing.B) {
	h := newHarness(b)
	h.broker.SetHandler(func([]pubsubtest.Message) {})
	r := h.newRelay()
	const backlog = 6000
	for b.Loop() {
		b.StopTimer()
		h.Exec(`TRUNCATE bff_consumer.outbox`)
		for range backlog / 300 {
			var all []event.Event
			for range 100 {
				all = append(all, newEvents(newSession(), "lcl")...)
			}
			h.addEvents(all...)
		}
		h.Exec(`ANALYZE bff_consumer.outbox`)
		b.StartTimer()
		if report := h.runOnce(r); report.Published != backlog {
			b.Fatalf("got %+v, want %d published rows", report, backlog)
		}
	}
	b.ReportMetric(float64(backlog*b.N)/b.Elapsed().Seconds(), "events/s")
}
