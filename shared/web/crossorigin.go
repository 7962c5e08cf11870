package web

import (
	"net/http"
	"slices"
)

// crossOrigin reports whether a page that is not ours makes a browser change something for its guest. The cookie does not
// prevent that: SameSite=Lax holds it back from pages of another site, and those of tenants are of this one. A browser
// says in Sec-Fetch-Site whose page asks, and no page can change what it says. Who says nothing is no browser, or one
// of before 2023; such a one is known by its Origin where ours are listed. It is not compared with Host, which is the
// gateway's name for us.
func (c *Config) crossOrigin(r *http.Request) bool {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return false // changes nothing, and cannot be read across origins
	}
	origin := r.Header.Get("Origin")
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin", "none": // none: the guest's own doing
		return false
	case "":
		if origin == "" || len(c.AllowedOrigins) == 0 {
			return false
		}
	}
	return !slices.Contains(c.AllowedOrigins, origin)
}
