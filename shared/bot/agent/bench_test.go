package agent_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/bot/agent"
)

func BenchmarkClassify(b *testing.B) {
	all := slices.Sorted(maps.Values(browserAgents))
	for name, agents := range map[string][]string{
		"people":  all,
		"crawler": {"Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"},
		"tool":    {"curl/8.5.0"},
		// User agents of the full length that cost the most.
		"hostile words":    {strings.Repeat("cubot Current b.co@", 200)},
		"hostile patterns": {strings.Repeat("Current Spider ", 200)},
		"hostile domains":  {strings.Repeat("a.b@a.c ", 300)},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				agent.Classify(agents[i%len(agents)])
			}
		})
	}
}

func BenchmarkAnomaly(b *testing.B) {
	h := fetch()
	b.ReportAllocs()
	for b.Loop() {
		agent.Anomaly(h)
	}
}
