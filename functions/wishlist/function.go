// Package wishlist owns the three routes of a guest's wishlist: listing, adding and removing.
// Package shared/wishlist owns the table and its copy in Redis; this package never touches either
// itself.
//
// Admission to every route is a Redis round trip of at most 100 ms, also for a request refused as
// malformed (400, 413, 422). Admission can add 150 ms of Postgres for the consent of a session lost
// by Redis, and 300 ms of Redis or Postgres for the suspended tenants. A client over a limit (429)
// costs another 100 ms of Redis; a client with the score of a bot up to 400 ms of reCAPTCHA and 300
// ms of Postgres, and 500 ms of Redis if Postgres fails. Without Redis each instance enforces the
// limits by itself. An error other than a named problem is 500.
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

// NewList returns the handler of GET /wishlist. NewList does no I/O and cannot fail.
func NewList(p *wiring.Deps, store *wishlist.Store) *List {
	return &List{p.Guests, p.Sessions, store, p.Compose, p.Region}
}

// NewAdd returns the handler of POST /wishlist. NewAdd does no I/O and cannot fail.
func NewAdd(p *wiring.Deps, store *wishlist.Store) *Add { return &Add{p.Guests, store} }

// NewRemove returns the handler of DELETE /wishlist/{propertyId}. NewRemove does no I/O and cannot
// fail.
func NewRemove(p *wiring.Deps, store *wishlist.Store) *Remove { return &Remove{p.Guests, store} }
