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
	"melmastoon.ghasi.io/bff-consumer/shared/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// house is the three functions of this module with real stores, which tests take away, and upstreams that tests
// command.
type house struct {
	*functest.House
	up    *upstreams
	flags string // path of the flags file
}

func newHouse(t testing.TB) *house { return houseIn(functest.New(t)) }

func houseIn(base *functest.House) *house {
	base.T.Helper()
	h := &house{base, newUpstreams(base.T), base.T.TempDir() + "/flags.json"}
	h.writeFlags(`{}`)
	e := functest.Environment(h.T, h.Database, h.Redis.Addr, h.up.URL)
	e.FlagsFile, e.ValidateEvents = h.flags, true
	h.Open(e)
	p := h.Parts
	finder := NewFinder(p.Keys, p.Cache, p.Upstreams, p.Compose, p.Flags, p.Region, p.Now)
	guests := NewGuests(p.Door, p.Sessions, p.Flags, p.Now)
	h.Mount("POST "+web.Base+"/search", NewList(finder, guests).Serve)
	h.Mount("POST "+web.Base+"/search/map", NewMap(finder, guests).Serve)
	h.Mount("GET "+web.Base+"/facets", NewFacets(p.Door, p.Keys, p.Cache, p.Upstreams).Serve)
	return h
}

// answer is what a client got.
type answer struct {
	*functest.Answer
	list listing
}

type listing struct {
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
func (h *house) do(method, path, body string, headers ...string) *answer {
	h.T.Helper()
	if method == "POST" {
		headers = append([]string{"Content-Type", "application/json"}, headers...)
	}
	a := &answer{Answer: h.Ask(method, path, "", body, headers...)}
	a.Into(h.T, &a.list)
	return a
}

// find is a search that must be answered with 200.
func (h *house) find(body string, headers ...string) *answer {
	h.T.Helper()
	a := h.do("POST", "/search", body, headers...)
	if a.StatusCode != http.StatusOK {
		h.T.Fatalf("%d %s", a.StatusCode, a.Text)
	}
	return a
}

// request is a valid body for a city; with replaces parts of it.
func (h *house) request(city string, with ...string) string {
	in := h.Now().AddDate(0, 0, 10)
	body := fmt.Sprintf(`{"geo":{"mode":"city","city":%q},"dates":{"checkIn":%q,"checkOut":%q},"occupancy":{"adults":2,"children":0,"rooms":1}}`,
		city, in.Format(time.DateOnly), in.AddDate(0, 0, 3).Format(time.DateOnly))
	return functest.Replace(h.T, body, with...)
}

// setFlags writes the flags file and waits until it is in force.
func (h *house) setFlags(document string) {
	h.T.Helper()
	want := h.writeFlags(document)
	h.Eventually("the flags are in force", func() bool { return reflect.DeepEqual(h.Parts.Flags.Current(), want) })
}

// writeFlags writes the flags file, with limits and the hunt for bots off unless the document says otherwise: a test is one
// guest who asks a lot.
func (h *house) writeFlags(document string) *flags.Values {
	h.T.Helper()
	fields := map[string]any{"limitsEnabled": false, "botMode": "off"}
	if err := json.Unmarshal([]byte(document), &fields); err != nil {
		h.T.Fatal(err)
	}
	whole, err := json.Marshal(fields)
	if err != nil {
		h.T.Fatal(err)
	}
	if err := os.WriteFile(h.flags, whole, 0o600); err != nil {
		h.T.Fatal(err)
	}
	want, err := flags.Parse(whole, nil)
	if err != nil {
		h.T.Fatal(err)
	}
	return want
}
