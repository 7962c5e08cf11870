package telemetry

import (
	"slices"
	"testing"
	"time"
)

func TestTelemetryClick_LateReportKeepsViewOrder(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	cookie := h.newGuest()
	h.Advance(time.Hour)
	click := func(n int, ago time.Duration) {
		h.mustSend(1, "click", cookie, clickBody(n, `,"occurredAt":"`+h.Now().Add(-ago).Format(time.RFC3339Nano)+`"`))
	}
	click(1, 30*time.Minute)
	click(2, 10*time.Minute)
	click(1, 40*time.Minute)
	click(3, 20*time.Minute)
	var order []string
	for _, v := range h.recentlyViewed(cookie) {
		order = append(order, v.PropertyID)
	}
	if want := []string{propertyID(2), propertyID(3), propertyID(1)}; !slices.Equal(order, want) {
		t.Errorf("got order %v; want %v", order, want)
	}
}
