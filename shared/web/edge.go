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

// edgeSecrets reads EDGE_SECRET: one value, or two while it changes.
func edgeSecrets(text string) ([]string, error) {
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

// around reports whether a request has not come by the edge. What it came with is taken off: nothing behind needs it.
func (c *Config) around(r *http.Request) bool {
	if len(c.edge) == 0 {
		return false
	}
	said := []byte(r.Header.Get(edgeHeader))
	r.Header.Del(edgeHeader)
	equal := 0
	for _, secret := range c.edge { // all of them: how long it takes tells nothing
		equal |= subtle.ConstantTimeCompare(said, []byte(secret))
	}
	return equal == 0
}
