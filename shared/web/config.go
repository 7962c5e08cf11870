package web

import (
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
)

// Config is the environment of the pipeline.
type Config struct {
	ProjectID string // GOOGLE_CLOUD_PROJECT, for links from log records to traces; may be empty
	// TRUSTED_HOPS: how many of our proxies append to X-Forwarded-For; 0: the peer is the client
	TrustedHops int
	// PAGE_ORIGINS, separated by commas: origins whose pages may change data; empty: our own origin
	// only
	AllowedOrigins []string
	// EDGE_SECRET, which the load balancer adds to requests; empty: requests need no secret
	edgeSecrets []string
}

func configFromEnv() (Config, error) {
	c := Config{ProjectID: os.Getenv("GOOGLE_CLOUD_PROJECT")}
	if hops := os.Getenv("TRUSTED_HOPS"); hops != "" {
		n, err := strconv.Atoi(hops)
		if err != nil || n < 0 || n > 8 {
			return c, fmt.Errorf("TRUSTED_HOPS must be a number from 0 to 8, is %q", hops)
		}
		c.TrustedHops = n
	}
	if origins := os.Getenv("PAGE_ORIGINS"); origins != "" {
		c.AllowedOrigins = strings.Split(origins, ",")
	}
	for _, origin := range c.AllowedOrigins {
		if u, err := url.Parse(origin); err != nil || u.Host == "" || origin != u.Scheme+"://"+u.Host {
			return c, fmt.Errorf("PAGE_ORIGINS must be origins such as https://www.example.com, has %q", origin)
		}
	}
	var err error
	c.edgeSecrets, err = parseEdgeSecrets(os.Getenv("EDGE_SECRET"))
	return c, err
}
