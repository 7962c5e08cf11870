package agent

import (
	"net/http"
	"strings"
)

// Anomaly returns the name of the first anomaly in the headers of a client with a browser's user
// agent, or "": a header that all browsers of the family send is missing, or two headers contradict
// each other. A user agent that does not begin with "Mozilla/5.0 (", or none, has no anomaly.
// Anomaly is pure, costs some string searches and never fails. The name never contains text of the
// client.
//
// The web client of this platform calls with fetch, whose headers differ from the headers of a page
// load. Anomaly checks only rules that hold for both. Client hints and Sec-Fetch headers are
// missing over plain HTTP and in old or embedded browsers; their absence is never an anomaly.
func Anomaly(h http.Header) string {
	userAgent := h.Get("User-Agent")
	if !strings.HasPrefix(userAgent, "Mozilla/5.0 (") {
		return "" // phones and apps, whose headers are unknown
	}
	accept, languages, hints := h.Get("Accept"), h.Get("Accept-Language"), h.Get("Sec-Ch-Ua")
	switch {
	case accept == "":
		return "no-accept"
	case languages == "":
		return "no-accept-language"
	case languages == "*":
		return "any-language" // HTTP clients that imitate fetch send this
	case h.Get("Sec-Fetch-Mode") == "navigate" && !strings.Contains(accept, "text/html"):
		return "navigates-to-data"
	case h.Get("Postman-Token") != "":
		return "header-of-a-tool"
	case hints != "":
		return hintMismatch(userAgent, hints, h.Get("Sec-Ch-Ua-Platform"))
	}
	return ""
}

// hintMismatch compares a user agent with the client hints. Programs that fake a user agent often
// forget to change the hints.
func hintMismatch(userAgent, hints, platform string) string {
	if strings.Contains(hints, "Headless") {
		return "headless-hints"
	}
	version, hinted := digitsAfter(userAgent, "Chrome/"), digitsAfter(hints, `"Chromium";v="`)
	switch {
	case version == "": // Firefox and Safari send no hints
		return "hints-of-another-browser"
	case hinted != "" && version != hinted:
		return "hints-of-another-version"
	}
	// Linux and Android are not compared: a phone that requests the desktop page mixes both names.
	switch strings.Trim(platform, `"`) {
	case "Windows":
		return platformMismatch(strings.Contains(userAgent, "Windows"))
	case "macOS":
		return platformMismatch(strings.Contains(userAgent, "Mac OS X"))
	}
	return ""
}

// digitsAfter returns the digits directly after the first occurrence of a mark.
func digitsAfter(s, mark string) string {
	_, rest, _ := strings.Cut(s, mark)
	end := 0
	for end < len(rest) && isDigit(rest[end]) {
		end++
	}
	return rest[:end]
}

// platformMismatch returns the name of the anomaly unless the platforms agree.
func platformMismatch(agrees bool) string {
	if agrees {
		return ""
	}
	return "hints-of-another-system"
}
