// Package wishlist is the front door to what a guest wants to remember: the list, an addition, a removal. It registers
// its entry points and builds them; each route has a file of its own.
package wishlist

import (
	"context"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // the platform's packer demands it
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	_ "melmastoon.ghasi.io/bff-consumer/shared/postgres/connector"
	"melmastoon.ghasi.io/bff-consumer/shared/setup"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

func init() {
	register("WishlistList", "GET "+web.Base+"/wishlist", func(p *setup.Parts) web.Handler { return NewList(p, room(p)).Serve })
	register("WishlistAdd", "POST "+web.Base+"/wishlist", func(p *setup.Parts) web.Handler { return NewAdd(p, room(p)).Serve })
	register("WishlistRemove", "DELETE "+web.Base+"/wishlist/{propertyId}",
		func(p *setup.Parts) web.Handler { return NewRemove(p, room(p)).Serve })
}

func register(name, pattern string, build func(*setup.Parts) web.Handler) {
	functions.HTTP(name, web.Open(name, pattern, func(ctx context.Context) (web.Handler, error) {
		p, err := setup.Keeper(ctx)
		if err != nil {
			return nil, err
		}
		return p.Door.Counted(build(p)), nil
	}))
}

func room(p *setup.Parts) *wishlist.Room { return wishlist.New(p.Redis, p.DB, p.Keys, p.Now) }
