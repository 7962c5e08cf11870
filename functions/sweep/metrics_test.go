package sweep

import (
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/otlptest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func TestSweepServe_RecordsLastSuccess(t *testing.T) {
	for _, f := range web.Functions() {
		t.Run(f.Name, func(t *testing.T) {
			collector := otlptest.Open(t)
			h := newHarness(t)
			h.trigger(f.Name, `{"dryRun":true}`)
			if at := collector.Metric("bff.job.last_success"); at != 0 || len(collector.Spans("")) == 0 {
				t.Errorf("dry run: got %d spans and a last success at %v, want spans without a success", len(collector.Spans("")), at)
			}
			h.openAll() // a new instance exports at its first request; this one exported a moment ago
			before := float64(time.Now().Add(-time.Minute).Unix())
			h.trigger(f.Name, `{}`)
			if at := collector.Metric("bff.job.last_success"); at < before || collector.Resource("faas.name") != f.Name {
				t.Errorf("got a last success of %s at %v, want %s at %v or later", collector.Resource("faas.name"), at, f.Name, before)
			}
		})
	}
}
