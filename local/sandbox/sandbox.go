// Package sandbox owns the four upstream services of the local system: search-aggregation, pricing, property and
// theme-config over one data set, speaking the contracts of shared/upstream, and misbehaving on demand. It never
// stores anything: the same question gets the same answer in every run, but for the time a price was captured.
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

// UpstreamNames are the upstreams, in the order they are shown.
var UpstreamNames = []string{"search", "pricing", "property", "theme"}

// Sandbox is the four services. It is safe for concurrent use.
type Sandbox struct {
	Upstreams map[string]*Upstream // by name

	data     *dataset.Dataset
	coverage map[any][]string // H3 cells of each city and area, worked out once
	facets   map[facetKey]facetCounts
	now      func() time.Time
	colors   sync.Map // of published themes, #rrggbb by tenant id
}

// New prepares the services over a data set. now is the clock that prices are captured by.
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

// Serve opens a listener for each service on a free port of 127.0.0.1 and returns their base URLs by name.
// stop closes them, and with them whatever hangs.
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
				panic(fmt.Sprintf("sandbox: serve %s: %v", name, err)) // the listener is ours and local; nothing takes it away
			}
		}()
	}
	return urls, stop, nil
}

// Ping asks a service whether it answers, whatever behaviour it was told to show.
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
		return fmt.Errorf("answers %d", res.StatusCode)
	}
	return nil
}
