package agent

import (
	"net/http"
	"strings"
)

// Anomaly names what is wrong with the headers of a client whose agent is a browser's: something that no browser of
// the family leaves out, or a contradiction. Empty means nothing is.
//
// Our own client calls with fetch, whose headers are others than those of a page that is opened, so only what holds
// for both is judged. Client hints and Sec-Fetch headers may be absent, as they are over plain HTTP and in old or
// embedded browsers; their absence is never an anomaly.
func Anomaly(h http.Header) string {
	claimed := h.Get("User-Agent")
	if !strings.HasPrefix(claimed, "Mozilla/5.0 (") {
		return "" // phones and apps of which we do not know what they send
	}
	accept, languages, hints := h.Get("Accept"), h.Get("Accept-Language"), h.Get("Sec-Ch-Ua")
	switch {
	case accept == "":
		return "no-accept"
	case languages == "":
		return "no-accept-language"
	case languages == "*":
		return "any-language" // what HTTP clients say that imitate fetch
	case h.Get("Sec-Fetch-Mode") == "navigate" && !strings.Contains(accept, "text/html"):
		return "navigates-to-data"
	case h.Get("Postman-Token") != "":
		return "header-of-a-tool"
	case hints != "":
		return hintMismatch(claimed, hints, h.Get("Sec-Ch-Ua-Platform"))
	}
	return ""
}

// hintMismatch compares an agent with the client hints, which programs that put on another agent forget.
func hintMismatch(claimed, hints, platform string) string {
	if strings.Contains(hints, "Headless") {
		return "headless-hints"
	}
	claims, hinted := digitsAfter(claimed, "Chrome/"), digitsAfter(hints, `"Chromium";v="`)
	switch {
	case claims == "": // Firefox and Safari send none
		return "hints-of-another-browser"
	case hinted != "" && claims != hinted:
		return "hints-of-another-version"
	}
	// Linux and Android are not held against each other: a phone that asks for the desktop page mixes them.
	switch strings.Trim(platform, `"`) {
	case "Windows":
		return platformMismatch(strings.Contains(claimed, "Windows"))
	case "macOS":
		return platformMismatch(strings.Contains(claimed, "Mac OS X"))
	}
	return ""
}

// digitsAfter are those right behind a mark.
func digitsAfter(s, mark string) string {
	_, behind, _ := strings.Cut(s, mark)
	end := 0
	for end < len(behind) && isDigit(behind[end]) {
		end++
	}
	return behind[:end]
}

func platformMismatch(agrees bool) string {
	if agrees {
		return ""
	}
	return "hints-of-another-system"
}
