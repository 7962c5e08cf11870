// Package search is the front door for finding hotels: the list, the map and the facets. It registers
// its entry points and builds them; each route has a file of its own.
package search

import (
	"context"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // the platform's packer demands it
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

func openList(ctx context.Context, warmUp *lifecycle.WarmUp) (web.Handler, error) {
	finder, guests, err := build(ctx, warmUp)
	if err != nil {
		return nil, err
	}
	return guests.guests.CountRejected(NewList(finder, guests).Serve), nil
}

func openMap(ctx context.Context, warmUp *lifecycle.WarmUp) (web.Handler, error) {
	finder, guests, err := build(ctx, warmUp)
	if err != nil {
		return nil, err
	}
	return guests.guests.CountRejected(NewMap(finder, guests).Serve), nil
}

func openFacets(ctx context.Context, warmUp *lifecycle.WarmUp) (web.Handler, error) {
	p, err := wiring.FromEnv(ctx, warmUp)
	if err != nil {
		return nil, err
	}
	return NewFacets(p.Guests, p.Keys, p.Cache, p.Upstreams).Serve, nil
}

func build(ctx context.Context, warmUp *lifecycle.WarmUp) (*Finder, *Responder, error) {
	p, err := wiring.FromEnv(ctx, warmUp)
	if err != nil {
		return nil, nil, err
	}
	return NewFinder(p.Keys, p.Cache, p.Upstreams, p.Compose, p.Flags, p.Region, p.Now),
		NewResponder(p.Guests, p.Sessions, p.Flags, p.Now), nil
}
