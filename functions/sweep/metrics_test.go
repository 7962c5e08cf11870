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
				t.Errorf("a dry run counts: %v", at)
			}
			h.openAll() // an instance of its own, as the last request of this one was a moment ago
			before := float64(time.Now().Add(-time.Minute).Unix())
			h.trigger(f.Name, `{}`)
			if at := collector.Metric("bff.job.last_success"); at < before || collector.Resource("faas.name") != f.Name {
				t.Errorf("%s last succeeded at %v", collector.Resource("faas.name"), at)
			}
		})
	}
}
