package detail

import (
	"net/http"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/deptest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func TestDeps_MatchGolden(t *testing.T) { deptest.Golden(t) }

// harness serves the two functions of this module with real stores, which tests can break, and with
// controllable upstreams.
type harness struct {
	*functest.Harness
	upstreams *upstreams
}

func newHarness(t testing.TB) *harness {
	t.Helper()
	h := &harness{Harness: functest.New(t)}
	h.Set(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	h.upstreams = newUpstreams(t, h.Now)
	h.open()
	return h
}

// newInstance returns another process of the functions with the same stores, upstreams and clock.
func (h *harness) newInstance() *harness {
	h.T.Helper()
	other := &harness{h.NewInstance(), h.upstreams}
	other.open()
	return other
}

func (h *harness) open() {
	h.T.Helper()
	h.BuildDeps(functest.Environment(h.T, h.Database, h.Redis.Addr, h.upstreams.URL))
	h.Mount("GET "+web.BasePath+"/hotels/{propertyId}", NewDetail(h.Deps, handoff.Link{}).Serve)
	h.Mount("GET "+web.BasePath+"/hotels/{propertyId}/availability", NewAvailability(h.Deps).Serve)
}

func (h *harness) get(path string, headers ...string) *response {
	return h.send("GET", path, headers...)
}

// send sends a request and decodes an uncompressed answer. It fails the test when the answer sets a
// cookie.
func (h *harness) send(method, path string, headers ...string) *response {
	h.T.Helper()
	a := &response{Result: h.Do(method, path, "", "", headers...)}
	if a.Text != "" && a.Header.Get("Content-Encoding") == "" {
		a.Decode(h.T, &a.responseBody)
	}
	if a.Header.Get("Set-Cookie") != "" {
		h.T.Errorf("%s %s sets a cookie", method, path)
	}
	return a
}

// mustGet sends a GET and fails the test unless the status is 200.
func (h *harness) mustGet(path string, headers ...string) *response {
	h.T.Helper()
	a := h.get(path, headers...)
	if a.StatusCode != http.StatusOK {
		h.T.Fatalf("%s: got %d %s; want status %d", path, a.StatusCode, a.Text, http.StatusOK)
	}
	return a
}
