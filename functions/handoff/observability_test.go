package handoff

import (
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/otlptest"
)

func TestHandoffMint_TracesContainNoPersonalData(t *testing.T) {
	collector := otlptest.Open(t)
	h := newHarness(t)
	a := h.mustMint(h.requestBody(), "Idempotency-Key", "canary-key", "Referer", "https://www.melmastoon.ghasi.io/search?city=canary")
	h.post(h.requestBody("checkIn", "canary"), "Idempotency-Key", "canary-other")
	h.Flush()
	collector.AssertAbsent(t, a.token(t), a.HandoffID, a.SessionCookie(), "gms_", "kabul-grand", "canary", "hmac-2026", "Mozilla", "192.0.2", "ppt_", "tnt_",
		"VALUES", ":bff-consumer:")
	for name, least := range map[string]int{"POST /bff/consumer/v1/handoff": 2, "mint": 1, "PIPELINE": 1, "property": 1} {
		if n := len(collector.Spans(name)); n < least {
			t.Errorf("got %d spans %q; want at least %d", n, name, least)
		}
	}
	batches := 0
	for _, s := range collector.Spans("") {
		if otlptest.Attribute(s, "db.system.name") == "postgresql" && otlptest.Attribute(s, "db.operation.batch.size") != "" {
			batches++
		}
	}
	if batches == 0 {
		t.Error("got no span of a Postgres batch")
	}
}
