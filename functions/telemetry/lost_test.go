package telemetry

import (
	"context"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
)

func TestASessionThatRedisLosesUnderAReportKeepsItsEvents(t *testing.T) {
	h := newHouse(t)
	cookie := h.guest()
	before := len(h.Events(""))
	redistest.After(h.Parts.Redis, func() { h.Parts.Redis.FlushAll(context.Background()) }) // between Admit and Leave
	if again := h.send(2, "click", cookie, batch(clicked(1), clicked(2))); again != cookie {
		t.Errorf("the guest is %q now", again)
	}
	if n := len(h.Events("")) - before; n != 2 {
		t.Errorf("%d events are told", n)
	}
}
