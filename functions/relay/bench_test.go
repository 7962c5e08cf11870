package relay

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
)

// BenchmarkDrain sends a backlog; ./dev bench has plain relays beside it.
func BenchmarkDrain(b *testing.B) {
	h := newHouse(b)
	h.broker.Take(func([]pubsubtest.Arrival) {})
	r := h.relay()
	const backlog = 6000
	for b.Loop() {
		b.StopTimer()
		h.exec(`TRUNCATE bff_consumer.outbox`)
		for range backlog / 300 {
			var all []event.Event
			for range 100 {
				all = append(all, events(newSession(), "lcl")...)
			}
			h.add(all...)
		}
		h.exec(`ANALYZE bff_consumer.outbox`)
		b.StartTimer()
		if report := h.once(r); report.Published != backlog {
			b.Fatalf("%+v", report)
		}
	}
	b.ReportMetric(float64(backlog*b.N)/b.Elapsed().Seconds(), "events/s")
}
