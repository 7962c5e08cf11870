package adminapi

import (
	"slices"
	"testing"
)

func TestHandler_UnknownRouteListsRoutes(t *testing.T) {
	t.Parallel()
	b := newHarness(t, nil)
	for _, path := range []string{"/_local/", "/_local/nothing"} {
		code, answer := b.call(t, "GET", path, "")
		routes, _ := answer["routes"].([]any)
		if code != 404 || !slices.Contains(routes, any("GET /_local/telemetry")) || !slices.Contains(routes, any("PUT /_local/upstreams/{name}")) {
			t.Errorf("%s: %d %v", path, code, answer)
		}
	}
}
