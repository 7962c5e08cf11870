package search

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/flags"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// harness is the three functions of this module with real stores, which tests take away, and upstreams that tests
// command.
type harness struct {
	*functest.Harness
	upstreams *upstreams
	flagsPath string // path of the flags file
}

func newHarness(t testing.TB) *harness { return newHarnessWith(functest.New(t)) }

func newHarnessWith(base *functest.Harness) *harness {
	base.T.Helper()
	h := &harness{base, newUpstreams(base.T), base.T.TempDir() + "/flags.json"}
	h.writeFlags(`{}`)
	e := functest.Environment(h.T, h.Database, h.Redis.Addr, h.upstreams.URL)
	e.FlagsFile, e.ValidateEvents = h.flagsPath, true
	h.BuildDeps(e)
	p := h.Deps
	finder := NewFinder(p.Keys, p.Cache, p.Upstreams, p.Compose, p.Flags, p.Region, p.Now)
	guests := NewResponder(p.Guests, p.Sessions, p.Flags, p.Now)
	h.Mount("POST "+web.BasePath+"/search", NewList(finder, guests).Serve)
	h.Mount("POST "+web.BasePath+"/search/map", NewMap(finder, guests).Serve)
	h.Mount("GET "+web.BasePath+"/facets", NewFacets(p.Guests, p.Keys, p.Cache, p.Upstreams).Serve)
	return h
}

// response is what a client got.
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

// do sends a request as a browser of nobody, unless a cookie is among the headers.
func (h *harness) do(method, path, body string, headers ...string) *response {
	h.T.Helper()
	if method == "POST" {
		headers = append([]string{"Content-Type", "application/json"}, headers...)
	}
	a := &response{Result: h.Do(method, path, "", body, headers...)}
	a.Decode(h.T, &a.body)
	return a
}

// mustSearch is a search that must be answered with 200.
func (h *harness) mustSearch(body string, headers ...string) *response {
	h.T.Helper()
	a := h.do("POST", "/search", body, headers...)
	if a.StatusCode != http.StatusOK {
		h.T.Fatalf("got %d %s; want status %v", a.StatusCode, a.Text, http.StatusOK)
	}
	return a
}

// requestBody is a valid body for a city; with replaces parts of it.
func (h *harness) requestBody(city string, with ...string) string {
	in := h.Now().AddDate(0, 0, 10)
	body := fmt.Sprintf(`{"geo":{"mode":"city","city":%q},"dates":{"checkIn":%q,"checkOut":%q},"occupancy":{"adults":2,"children":0,"rooms":1}}`,
		city, in.Format(time.DateOnly), in.AddDate(0, 0, 3).Format(time.DateOnly))
	return functest.ReplaceInBody(h.T, body, with...)
}

// setFlags writes the flags file and waits until it is in force.
func (h *harness) setFlags(document string) {
	h.T.Helper()
	want := h.writeFlags(document)
	h.Eventually("the flags are in force", func() bool { return reflect.DeepEqual(h.Deps.Flags.Current(), want) })
}

// writeFlags writes the flags file, with limits and the hunt for bots off unless the document says otherwise: a test is one
// guest who asks a lot.
func (h *harness) writeFlags(document string) *flags.Values {
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
	want, err := flags.Parse(whole, nil)
	if err != nil {
		h.T.Fatal(err)
	}
	return want
}
