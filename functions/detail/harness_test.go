package detail

import (
	"net/http"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/deptest"
	"melmastoon.ghasi.io/bff-consumer/shared/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func TestDeps(t *testing.T) { deptest.Golden(t) }

// house is the two functions of this module with real stores, which tests take away, and upstreams that tests command.
type house struct {
	*functest.House
	up *upstreams
}

func newHouse(t testing.TB) *house {
	t.Helper()
	h := &house{House: functest.New(t)}
	h.Set(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC))
	h.up = newUpstreams(t, h.Now)
	h.open()
	return h
}

// beside is another instance of the functions: the same stores, upstreams and time, a process of its own.
func (h *house) beside() *house {
	h.T.Helper()
	other := &house{h.Beside(), h.up}
	other.open()
	return other
}

func (h *house) open() {
	h.T.Helper()
	h.Open(functest.Environment(h.T, h.Database, h.Redis.Addr, h.up.URL))
	h.Mount("GET "+web.Base+"/hotels/{propertyId}", NewDetail(h.Parts, handoff.Link{}).Serve)
	h.Mount("GET "+web.Base+"/hotels/{propertyId}/availability", NewAvailability(h.Parts).Serve)
}

func (h *house) get(path string, headers ...string) *answer { return h.send("GET", path, headers...) }

func (h *house) send(method, path string, headers ...string) *answer {
	h.T.Helper()
	a := &answer{Answer: h.Ask(method, path, "", "", headers...)}
	if a.Text != "" && a.Header.Get("Content-Encoding") == "" {
		a.Into(h.T, &a.content)
	}
	if a.Header.Get("Set-Cookie") != "" {
		h.T.Errorf("%s %s sets a cookie", method, path)
	}
	return a
}

// ok is a get that must be answered with 200.
func (h *house) ok(path string, headers ...string) *answer {
	h.T.Helper()
	a := h.get(path, headers...)
	if a.StatusCode != http.StatusOK {
		h.T.Fatalf("%s: %d %s", path, a.StatusCode, a.Text)
	}
	return a
}
