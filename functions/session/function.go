// Package session is the front door to what is known of a guest: reading it, choosing language, currency and what may
// be done with data, taking it all along, and having it forgotten. It registers its entry points and builds them; each
// route has a file of its own.
package session

import (
	"context"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // the platform's packer demands it
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	_ "melmastoon.ghasi.io/bff-consumer/shared/postgres/connector"
	"melmastoon.ghasi.io/bff-consumer/shared/setup"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func init() {
	register("Session", "GET "+web.Base+"/session", func(d *Desk) web.Handler { return d.Show })
	register("SessionLocale", "POST "+web.Base+"/session/locale", func(d *Desk) web.Handler { return d.Locale })
	register("SessionCurrency", "POST "+web.Base+"/session/currency", func(d *Desk) web.Handler { return d.Currency })
	register("SessionConsent", "POST "+web.Base+"/session/consent", func(d *Desk) web.Handler { return d.Consent })
	register("SessionClear", "POST "+web.Base+"/session/clear", func(d *Desk) web.Handler { return d.Clear })
	register("SessionExport", "GET "+web.Base+"/session/export", func(d *Desk) web.Handler { return d.Export })
}

func register(name, pattern string, of func(*Desk) web.Handler) {
	functions.HTTP(name, web.Open(name, pattern, func(ctx context.Context) (web.Handler, error) {
		p, err := setup.Keeper(ctx)
		if err != nil {
			return nil, err
		}
		desk := NewDesk(p)
		return desk.door.Counted(of(desk)), nil
	}))
}
