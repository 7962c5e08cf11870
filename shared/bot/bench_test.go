package bot_test

import (
	"net/http"
	"net/netip"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/bot"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

// BenchmarkEvaluate measures the cost of a request without Redis: classifying the user agent,
// checking the headers and evaluating the evidence.
func BenchmarkEvaluate(b *testing.B) {
	d := newHarness(nil)
	guest := browser()
	guest.Set("Sec-Ch-Ua", `"Google Chrome";v="147", "Not.A/Brand";v="8", "Chromium";v="147"`)
	for name, req := range map[string]bot.Request{
		"guest":     {Header: guest},
		"tool":      {Header: http.Header{"User-Agent": {"curl/8.5.0"}}},
		"googlebot": {Header: http.Header{"User-Agent": {googlebot}}, Address: netip.MustParseAddr("66.249.66.1")},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				bot.Evaluate(d.Resolve(nil, req))
			}
		})
	}
}

// BenchmarkEnqueue measures a round trip with the detector's commands only, for a client at the
// pace of a guest and for a client that fills the lists in Redis.
func BenchmarkEnqueue(b *testing.B) {
	for name, every := range map[string]time.Duration{"guest": 6 * time.Second, "flood": time.Millisecond} {
		b.Run(name, func(b *testing.B) {
			d := newHarness(redistest.New(b))
			for b.Loop() {
				d.time = d.time.Add(every)
				pipe := d.rdb.Pipeline()
				pending := d.Enqueue(b.Context(), pipe, client("gms_1"), true)
				if err := lua.Exec(b.Context(), pipe); err != nil {
					b.Fatal(err)
				}
				d.Resolve(pending, bot.Request{})
			}
		})
	}
}
