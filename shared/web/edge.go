package web

import (
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
)

// edgeHeader is what the load balancer adds to every request. The gateway's own host is public: without this, whoever knows
// it goes around the rules and the cache of the edge.
const edgeHeader = "X-Edge-Secret"

// parseEdgeSecrets reads EDGE_SECRET: one value, or two while it changes.
func parseEdgeSecrets(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	secrets := strings.Split(text, ",")
	for _, s := range secrets {
		if len(s) < 32 || len(secrets) > 2 {
			return nil, errors.New("EDGE_SECRET must be one or two values of 32 characters or more")
		}
	}
	return secrets, nil
}

// bypassesEdge reports whether a request has not come by the edge. What it came with is taken off: nothing behind needs it.
func (c *Config) bypassesEdge(r *http.Request) bool {
	if len(c.edgeSecrets) == 0 {
		return false
	}
	said := []byte(r.Header.Get(edgeHeader))
	r.Header.Del(edgeHeader)
	equal := 0
	for _, secret := range c.edgeSecrets { // all of them: how long it takes tells nothing
		equal |= subtle.ConstantTimeCompare(said, []byte(secret))
	}
	return equal == 0
}
