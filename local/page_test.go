package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/local/servertest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// The page has its own paths; every other path belongs to the API.
func TestPage_IsServedAlongsideAPI(t *testing.T) {
	s := servertest.Start(t, servertest.StateDir(t))
	get := func(path string) (*http.Response, string) {
		t.Helper()
		res, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res, string(body)
	}
	for path, part := range map[string]string{"/": "/js/app.js", "/book": "/js/book.js", "/docs": "swagger-ui", "/docs/consumer.openapi.yaml": "openapi: 3"} {
		if res, body := get(path); res.StatusCode != http.StatusOK || !strings.Contains(body, part) || len(res.Cookies()) > 0 {
			t.Errorf("%s: %d, cookies %v", path, res.StatusCode, res.Cookies())
		}
	}
	for path, media := range map[string]string{web.BasePath + "/session": "application/json", "/_local/inside": "application/json", "/nothing": "application/problem+json"} {
		if res, _ := get(path); res.Header.Get("Content-Type") != media || res.Header.Get("Content-Security-Policy") != "" {
			t.Errorf("%s: %d %v", path, res.StatusCode, res.Header)
		}
	}
}

// The state of a breaker comes from the request log, whichever function owns the breaker.
func TestInside_ShowsOpenBreaker(t *testing.T) {
	s := servertest.Start(t, servertest.StateDir(t))
	state := func() any {
		_, inside := servertest.Call(t, http.MethodGet, s.URL+"/_local/inside", "")
		return inside["breakers"].(map[string]any)["pricing"]
	}
	if got := state(); got != "closed" {
		t.Fatalf("breaker of pricing %v at the start, want closed", got)
	}
	servertest.Call(t, http.MethodPut, s.URL+"/_local/upstreams/pricing", `{"errorRate":1}`)
	// each search misses the cache and calls pricing twice
	for _, city := range []string{"Kabul", "Herat", "Bamyan", "Kandahar"} {
		servertest.Call(t, http.MethodPost, s.URL+web.BasePath+"/search", servertest.SearchBody(city))
	}
	if got := state(); got != "open" {
		t.Errorf("breaker of pricing %v after eight failures, want open", got)
	}
}
