// Package search owns three public routes to find hotels: POST /search (a list), POST /search/map
// (pins) and GET /facets (values to filter by). The package composes answers from
// search-aggregation, pricing and theme-config and caches the answers in Redis. It owns no table
// and never books or mints.
//
// Admission to every route is a Redis round trip of at most 100 ms, also for a malformed body (400,
// 413, 422). Admission can add 150 ms of Postgres for the consent of a session lost by Redis, and
// 300 ms of Redis or Postgres for the suspended tenants. A client over a limit (429) costs another
// 100 ms of Redis; a client with the score of a bot up to 400 ms of reCAPTCHA and 300 ms of
// Postgres, and 500 ms of Redis if Postgres fails. Without Redis each instance enforces the limits
// by itself. An error other than a named problem is 500.
package search

import (
	"context"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // required by the platform build
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
)

func init() {
	functions.HTTP("Search", web.Register("Search", "POST "+web.BasePath+"/search", openList))
	functions.HTTP("SearchMap", web.Register("SearchMap", "POST "+web.BasePath+"/search/map", openMap))
	functions.HTTP("Facets", web.Register("Facets", "GET "+web.BasePath+"/facets", openFacets))
}

// openList builds Search from the environment.
func openList(ctx context.Context, warmUp *lifecycle.WarmUp) (web.Handler, error) {
	finder, responder, err := build(ctx, warmUp)
	if err != nil {
		return nil, err
	}
	return NewList(finder, responder).Serve, nil
}

// openMap builds SearchMap from the environment.
func openMap(ctx context.Context, warmUp *lifecycle.WarmUp) (web.Handler, error) {
	finder, responder, err := build(ctx, warmUp)
	if err != nil {
		return nil, err
	}
	return NewMap(finder, responder).Serve, nil
}

// openFacets builds Facets from the environment.
func openFacets(ctx context.Context, warmUp *lifecycle.WarmUp) (web.Handler, error) {
	p, err := wiring.FromEnv(ctx, warmUp)
	if err != nil {
		return nil, err
	}
	return NewFacets(p.Guests, p.Keys, p.Cache, p.Upstreams).Serve, nil
}

// build constructs the parts shared by list and map. The error names missing or malformed settings.
func build(ctx context.Context, warmUp *lifecycle.WarmUp) (*Finder, *Responder, error) {
	p, err := wiring.FromEnv(ctx, warmUp)
	if err != nil {
		return nil, nil, err
	}
	return NewFinder(p.Keys, p.Cache, p.Upstreams, p.Compose, p.Flags, p.Region, p.Now),
		NewResponder(p.Guests, p.Sessions, p.Flags, p.Now), nil
}
