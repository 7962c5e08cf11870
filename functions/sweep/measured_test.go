package sweep

import (
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/otlptest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func TestAJobTellsWhenItLastSucceeded(t *testing.T) {
	for _, f := range web.Functions() {
		t.Run(f.Name, func(t *testing.T) {
			collector := otlptest.Open(t)
			h := newHouse(t)
			h.tick(f.Name, `{"dryRun":true}`)
			if at := collector.Metric("bff.job.last_success"); at != 0 || len(collector.Spans("")) == 0 {
				t.Errorf("a dry run counts: %v", at)
			}
			h.open() // an instance of its own, as the last request of this one was a moment ago
			before := float64(time.Now().Add(-time.Minute).Unix())
			h.tick(f.Name, `{}`)
			if at := collector.Metric("bff.job.last_success"); at < before || collector.Resource("faas.name") != f.Name {
				t.Errorf("%s last succeeded at %v", collector.Resource("faas.name"), at)
			}
		})
	}
}
