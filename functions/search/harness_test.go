package search

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// harness serves the three functions of this module with real stores, which tests can break, and
// with controllable upstreams.
type harness struct {
	*functest.Harness
	upstreams *upstreams
	flagsPath string // path of the flags file
}

func newHarness(t testing.TB) *harness { return newHarnessWith(functest.New(t), `{}`) }

// newHarnessWith serves the functions with the stores of base and a flags document; see writeFlags.
func newHarnessWith(base *functest.Harness, flags string) *harness {
	base.T.Helper()
	h := &harness{base, newUpstreams(base.T), base.T.TempDir() + "/flags.json"}
	h.writeFlags(flags)
	h.open()
	return h
}

// newInstance returns another process of the functions with the same stores, upstreams, flags and
// clock.
func (h *harness) newInstance() *harness {
	h.T.Helper()
	other := &harness{h.NewInstance(), h.upstreams, h.flagsPath}
	other.open()
	return other
}

func (h *harness) open() {
	h.T.Helper()
	e := functest.Environment(h.T, h.Database, h.Redis.Addr, h.upstreams.URL)
	e.FlagsFile, e.ValidateEvents = h.flagsPath, true
	h.BuildDeps(e)
	p := h.Deps
	finder := NewFinder(p.Keys, p.Cache, p.Upstreams, p.Compose, p.Flags, p.Region, p.Now)
	responder := NewResponder(p.Guests, p.Sessions, p.Flags, p.Now)
	h.Mount("POST "+web.BasePath+"/search", NewList(finder, responder).Serve)
	h.Mount("POST "+web.BasePath+"/search/map", NewMap(finder, responder).Serve)
	h.Mount("GET "+web.BasePath+"/facets", NewFacets(p.Guests, p.Keys, p.Cache, p.Upstreams).Serve)
}

// response is the answer to a client.
type response struct {
	*functest.Result
	body responseBody
}

type responseBody struct {
	SearchSessionID string `json:"searchSessionId"`
	QueryHash       string `json:"queryHash"`
	ResultCount     int    `json:"resultCount"`
	Locale          string `json:"locale"`
	Currency        string `json:"currency"`
	Degraded        []struct{ Part, Reason string }
	Listings        []struct {
		PropertyID   string   `json:"propertyId"`
		TenantID     string   `json:"tenantId"`
		Badges       []string `json:"badges"`
		BrandPeek    struct{ Neutral bool }
		RateSnapshot *struct {
			CheapestNightlyMinor string `json:"cheapestNightlyMinor"`
			CapturedAt           time.Time
			IsStale              bool `json:"isStale"`
		}
	}
	Pins []struct {
		PropertyID           string `json:"propertyId"`
		CheapestNightlyMinor string `json:"cheapestNightlyMinor"`
	}
}

// do sends a request as a browser without a session, unless headers has a cookie.
func (h *harness) do(method, path, body string, headers ...string) *response {
	h.T.Helper()
	if method == "POST" {
		headers = append([]string{"Content-Type", "application/json"}, headers...)
	}
	a := &response{Result: h.Do(method, path, "", body, headers...)}
	a.Decode(h.T, &a.body)
	return a
}

// mustSearch sends a search and fails the test unless the status is 200.
func (h *harness) mustSearch(body string, headers ...string) *response {
	h.T.Helper()
	a := h.do("POST", "/search", body, headers...)
	if a.StatusCode != http.StatusOK {
		h.T.Fatalf("got %d %s; want status %v", a.StatusCode, a.Text, http.StatusOK)
	}
	return a
}

// requestBody returns a valid body for a city. with holds pairs of an old and a new part.
func (h *harness) requestBody(city string, with ...string) string {
	in := h.Now().AddDate(0, 0, 10)
	body := fmt.Sprintf(`{"geo":{"mode":"city","city":%q},"dates":{"checkIn":%q,"checkOut":%q},"occupancy":{"adults":2,"children":0,"rooms":1}}`,
		city, in.Format(time.DateOnly), in.AddDate(0, 0, 3).Format(time.DateOnly))
	return functest.ReplaceInBody(h.T, body, with...)
}

// newHarnessWithFlags is newHarness with a flags document; see writeFlags.
func newHarnessWithFlags(t testing.TB, flags string) *harness {
	return newHarnessWith(functest.New(t), flags)
}

// writeFlags writes the flags file. Limits and bot detection are off unless the document sets them,
// because a test is one guest who sends many requests.
func (h *harness) writeFlags(document string) {
	h.T.Helper()
	fields := map[string]any{"limitsEnabled": false, "botMode": "off"}
	if err := json.Unmarshal([]byte(document), &fields); err != nil {
		h.T.Fatal(err)
	}
	whole, err := json.Marshal(fields)
	if err != nil {
		h.T.Fatal(err)
	}
	if err := os.WriteFile(h.flagsPath, whole, 0o600); err != nil {
		h.T.Fatal(err)
	}
}
