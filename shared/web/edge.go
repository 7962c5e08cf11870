package web

import (
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
)

// edgeHeader is a request header added by the load balancer. The gateway's own host name is public:
// without the header, clients could bypass the rules and the cache of the edge.
const edgeHeader = "X-Edge-Secret"

// parseEdgeSecrets reads EDGE_SECRET: a single value, or two during a rotation.
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

// bypassesEdge reports whether a request did not pass the load balancer. The secret is
// removed from the request, because no handler needs it. Without configured secrets the answer is
// false.
func (c *Config) bypassesEdge(r *http.Request) bool {
	if len(c.edgeSecrets) == 0 {
		return false
	}
	sent := []byte(r.Header.Get(edgeHeader))
	r.Header.Del(edgeHeader)
	equal := 0
	for _, secret := range c.edgeSecrets { // compare all secrets, so that the time does not reveal the match
		equal |= subtle.ConstantTimeCompare(sent, []byte(secret))
	}
	return equal == 0
}
