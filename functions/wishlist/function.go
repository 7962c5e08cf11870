// Package wishlist is the front door to what a guest wants to remember: the list, an addition, a removal. It registers
// its entry points and builds them; each route has a file of its own.
package wishlist

import (
	"context"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // the platform's packer demands it
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
