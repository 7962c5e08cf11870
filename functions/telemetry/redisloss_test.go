package telemetry

import (
	"context"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

func TestTelemetry_RedisLossDuringRequestKeepsEvents(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	before := len(h.Events(""))
	// between Begin and Finish
	redistest.AfterNextPipeline(h.Deps.Redis, func() { h.Deps.Redis.FlushAll(context.Background()) })
	if again := h.mustSend(2, "click", cookie, batchBody(clickBody(1), clickBody(2))); again != cookie {
		t.Errorf("got cookie %q; want %q", again, cookie)
	}
	if n := len(h.Events("")) - before; n != 2 {
		t.Errorf("got %d events; want 2", n)
	}
}
