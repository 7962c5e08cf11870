package web

import (
	"net/http"
	"slices"
)

// crossOrigin reports whether a page of a foreign origin makes a browser change data of its guest.
// The cookie's SameSite=Lax does not prevent such a request: pages of tenants belong to the same
// site. Browsers name the page's relation in Sec-Fetch-Site, and no page can change the header. A
// client without the header is no browser, or a browser from before 2023; crossOrigin then compares
// Origin with the configured origins, if there are any. It does not compare Origin with Host,
// because Host is the gateway's name for this service.
func (c *Config) crossOrigin(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false // changes no data, and another origin cannot read the response
	}
	origin := r.Header.Get("Origin")
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none": // none: the guest entered the URL
		return false
	case "":
		if origin == "" || len(c.AllowedOrigins) == 0 {
			return false
		}
	}
	return !slices.Contains(c.AllowedOrigins, origin)
}
