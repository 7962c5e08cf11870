// Package search is the front door for finding hotels: the list, the map and the facets. It registers
// its entry points and builds them; each route has a file of its own.
package search

import (
	"context"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // the platform's packer demands it
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"melmastoon.ghasi.io/bff-consumer/shared/setup"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func init() {
	functions.HTTP("Search", web.Open("Search", "POST "+web.Base+"/search", openList))
	functions.HTTP("SearchMap", web.Open("SearchMap", "POST "+web.Base+"/search/map", openMap))
	functions.HTTP("Facets", web.Open("Facets", "GET "+web.Base+"/facets", openFacets))
}

func openList(ctx context.Context) (web.Handler, error) {
	finder, guests, err := build(ctx)
	if err != nil {
		return nil, err
	}
	return guests.door.Counted(NewList(finder, guests).Serve), nil
}

func openMap(ctx context.Context) (web.Handler, error) {
	finder, guests, err := build(ctx)
	if err != nil {
		return nil, err
	}
	return guests.door.Counted(NewMap(finder, guests).Serve), nil
}

func openFacets(ctx context.Context) (web.Handler, error) {
	p, err := setup.Guest(ctx)
	if err != nil {
		return nil, err
	}
	return NewFacets(p.Door, p.Keys, p.Cache, p.Upstreams).Serve, nil
}

func build(ctx context.Context) (*Finder, *Guests, error) {
	p, err := setup.Guest(ctx)
	if err != nil {
		return nil, nil, err
	}
	return NewFinder(p.Keys, p.Cache, p.Upstreams, p.Compose, p.Flags, p.Region, p.Now),
		NewGuests(p.Door, p.Sessions, p.Flags, p.Now), nil
}
