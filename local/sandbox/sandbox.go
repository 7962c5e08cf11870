// Package sandbox implements the four upstream services of the local system over a data set:
// search-aggregation, pricing, property and theme-config. They follow the contracts of
// shared/upstream and simulate latency, errors and hangs on demand. The package stores nothing
// except published themes, in memory: the same request gets the same response in every run, apart
// from the time of a price.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
)

// UpstreamNames are the names of the upstreams in display order.
var UpstreamNames = []string{"search", "pricing", "property", "theme"}

// Sandbox is the four services. It is safe for concurrent use.
type Sandbox struct {
	Upstreams map[string]*Upstream // by name

	data     *dataset.Dataset
	coverage map[any][]string // H3 cells by *dataset.City or areaKey
	facets   map[facetKey]facetCounts
	now      func() time.Time
	colors   sync.Map // of published themes; #rrggbb by tenant id
}

// New returns the services over a data set. now is the clock for the time of a price. New computes
// the coverage and the facets of every place.
func New(data *dataset.Dataset, now func() time.Time) *Sandbox {
	s := &Sandbox{data: data, now: now}
	s.coverage = computeCoverage(data)
	s.facets = countAllFacets(data)
	s.Upstreams = map[string]*Upstream{
		"search":   newUpstream("search", s.searchRoutes()),
		"pricing":  newUpstream("pricing", s.pricingRoutes()),
		"property": newUpstream("property", s.propertyRoutes()),
		"theme":    newUpstream("theme", s.themeRoutes()),
	}
	return s
}

// Serve starts each service on a free port of 127.0.0.1 and returns the base URLs by name. stop
// closes the listeners and all connections at once, hanging requests included. Serve returns an
// error if no port is free.
func (s *Sandbox) Serve() (urls map[string]string, stop func(), err error) {
	urls = map[string]string{}
	var servers []*http.Server
	stop = func() {
		for _, server := range servers {
			server.Close()
		}
	}
	for _, name := range UpstreamNames {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			stop()
			return nil, nil, fmt.Errorf("sandbox: open %s: %w", name, err)
		}
		server := &http.Server{Handler: s.Upstreams[name], ReadHeaderTimeout: 10 * time.Second}
		servers = append(servers, server)
		urls[name] = "http://" + l.Addr().String()
		go func() {
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				// unreachable: only stop closes the listener
				panic(fmt.Sprintf("sandbox: serve %s: %v", name, err))
			}
		}()
	}
	return urls, stop, nil
}

// Ping checks that the service at a base URL answers. The simulated behaviour does not affect Ping.
// It returns an error if the service does not answer 200 before ctx ends.
func Ping(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+healthPath, nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("sandbox: ping: status %d", res.StatusCode)
	}
	return nil
}
