// Package wishlist owns the three routes of a guest's wishlist: listing, adding and removing.
// Package shared/wishlist owns the table and its copy in Redis; this package never touches either
// itself.
package wishlist

import (
	"context"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // required by the platform build
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	_ "melmastoon.ghasi.io/bff-consumer/shared/postgres/connector"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

func init() {
	register("WishlistList", "GET "+web.BasePath+"/wishlist", func(p *wiring.Deps) web.Handler { return NewList(p, newStore(p)).Serve })
	register("WishlistAdd", "POST "+web.BasePath+"/wishlist", func(p *wiring.Deps) web.Handler { return NewAdd(p, newStore(p)).Serve })
	register("WishlistRemove", "DELETE "+web.BasePath+"/wishlist/{propertyId}",
		func(p *wiring.Deps) web.Handler { return NewRemove(p, newStore(p)).Serve })
}

// register registers an entry point. Opening reads the environment, and a process about to listen
// connects to Redis and Postgres first.
func register(name, pattern string, build func(*wiring.Deps) web.Handler) {
	functions.HTTP(name, web.Register(name, pattern, func(ctx context.Context, warmUp *lifecycle.WarmUp) (web.Handler, error) {
		p, err := wiring.FromEnvWithPostgres(ctx, warmUp)
		if err != nil {
			return nil, err
		}
		return build(p), nil
	}))
}

func newStore(p *wiring.Deps) *wishlist.Store { return wishlist.New(p.Redis, p.DB, p.Keys, p.Now) }

// NewList returns the handler of GET /wishlist.
func NewList(p *wiring.Deps, store *wishlist.Store) *List {
	return &List{p.Guests, p.Sessions, store, p.Compose, p.Region}
}

// NewAdd returns the handler of POST /wishlist.
func NewAdd(p *wiring.Deps, store *wishlist.Store) *Add { return &Add{p.Guests, store} }

// NewRemove returns the handler of DELETE /wishlist/{propertyId}.
func NewRemove(p *wiring.Deps, store *wishlist.Store) *Remove { return &Remove{p.Guests, store} }
