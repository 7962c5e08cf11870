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

// BenchmarkEvaluate is all that a request costs here besides Redis: the agent and the headers judged, the evidence weighed.
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

// BenchmarkEnqueue is a round trip with nothing but the detector's reads, of a client as slow as a guest and of one that
// fills what is kept.
func BenchmarkEnqueue(b *testing.B) {
	for name, every := range map[string]time.Duration{"guest": 6 * time.Second, "flood": time.Millisecond} {
		b.Run(name, func(b *testing.B) {
			d := newHarness(redistest.New(b))
			for b.Loop() {
				d.time = d.time.Add(every)
				pipe := d.rdb.Pipeline()
				read := d.Enqueue(b.Context(), pipe, client("gms_1"), true)
				if err := lua.Exec(b.Context(), pipe); err != nil {
					b.Fatal(err)
				}
				d.Resolve(read, bot.Request{})
			}
		})
	}
}
