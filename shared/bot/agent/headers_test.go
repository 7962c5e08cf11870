package agent_test

import (
	"net/http"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/bot/agent"
)

const hints = `"Google Chrome";v="147", "Not.A/Brand";v="8", "Chromium";v="147"`

// page returns the headers of Chrome for a page load.
func page() http.Header {
	return header("User-Agent", browserAgents["Chrome on Windows"], "Accept", "text/html,application/xhtml+xml,*/*;q=0.8",
		"Accept-Language", "fa-AF,fa;q=0.9", "Sec-Ch-Ua", hints, "Sec-Ch-Ua-Mobile", "?0", "Sec-Ch-Ua-Platform", `"Windows"`,
		"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Site", "same-origin", "Sec-Fetch-Dest", "document")
}

// fetch returns the headers of Chrome for a call with fetch.
func fetch() http.Header {
	h := page()
	h.Set("Accept", "*/*")
	h.Set("Sec-Fetch-Mode", "cors")
	h.Set("Sec-Fetch-Dest", "empty")
	return h
}

// header returns headers from names and values.
func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

func TestAnomaly_BrowsersHaveNone(t *testing.T) {
	t.Parallel()
	bare := header("User-Agent", browserAgents["Chrome on Windows"], "Accept", "*/*", "Accept-Language", "en")
	desktop := page() // as a phone requests it
	desktop.Set("User-Agent", "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/147.0.0.0 Safari/537.36")
	desktop.Set("Sec-Ch-Ua-Platform", `"Android"`)
	for name, h := range map[string]http.Header{
		"a page": page(), "a fetch": fetch(), "without hints and Sec-Fetch": bare, "a phone's desktop page": desktop,
		"Safari":     header("User-Agent", browserAgents["Safari on iPhone"], "Accept", "*/*", "Accept-Language", "ps"),
		"Opera Mini": header("User-Agent", browserAgents["Opera Mini"]),
		"a tool":     header("User-Agent", "curl/8.5.0", "Accept", "*/*"),
		"no headers": {},
	} {
		t.Run(name, func(t *testing.T) {
			if got := agent.Anomaly(h); got != "" {
				t.Errorf("anomaly %q, want none", got)
			}
		})
	}
}

func TestAnomaly_ImitatorsHaveOne(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(http.Header){
		"no-accept":                func(h http.Header) { h.Del("Accept") },
		"no-accept-language":       func(h http.Header) { h.Del("Accept-Language") },
		"any-language":             func(h http.Header) { h.Set("Accept-Language", "*") },
		"navigates-to-data":        func(h http.Header) { h.Set("Sec-Fetch-Mode", "navigate") },
		"header-of-a-tool":         func(h http.Header) { h.Set("Postman-Token", "1") },
		"headless-hints":           func(h http.Header) { h.Set("Sec-Ch-Ua", `"HeadlessChrome";v="147", "Chromium";v="147"`) },
		"hints-of-another-browser": func(h http.Header) { h.Set("User-Agent", browserAgents["Safari on a Mac"]) },
		"hints-of-another-version": func(h http.Header) { h.Set("Sec-Ch-Ua", `"Chromium";v="120", "Google Chrome";v="120"`) },
		"hints-of-another-system":  func(h http.Header) { h.Set("Sec-Ch-Ua-Platform", `"macOS"`) },
	} {
		t.Run(want, func(t *testing.T) {
			h := fetch()
			if change(h); agent.Anomaly(h) != want {
				t.Errorf("anomaly %q, want %q", agent.Anomaly(h), want)
			}
		})
	}
}
