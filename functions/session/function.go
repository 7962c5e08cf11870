// Package session is the front door to what is known of a guest: reading it, choosing language, currency and what may
// be done with data, taking it all along, and having it forgotten. It registers its entry points and builds them; each
// route has a file of its own.
package session

import (
	"context"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // the platform's packer demands it
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	_ "melmastoon.ghasi.io/bff-consumer/shared/postgres/connector"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
)

func init() {
	register("Session", "GET "+web.BasePath+"/session", func(d *Handlers) web.Handler { return d.Show })
	register("SessionLocale", "POST "+web.BasePath+"/session/locale", func(d *Handlers) web.Handler { return d.Locale })
	register("SessionCurrency", "POST "+web.BasePath+"/session/currency", func(d *Handlers) web.Handler { return d.Currency })
	register("SessionConsent", "POST "+web.BasePath+"/session/consent", func(d *Handlers) web.Handler { return d.Consent })
	register("SessionClear", "POST "+web.BasePath+"/session/clear", func(d *Handlers) web.Handler { return d.Clear })
	register("SessionExport", "GET "+web.BasePath+"/session/export", func(d *Handlers) web.Handler { return d.Export })
}

func register(name, pattern string, of func(*Handlers) web.Handler) {
	functions.HTTP(name, web.Register(name, pattern, func(ctx context.Context, warmUp *lifecycle.WarmUp) (web.Handler, error) {
		p, err := wiring.FromEnvWithPostgres(ctx, warmUp)
		if err != nil {
			return nil, err
		}
		return of(NewHandlers(p)), nil
	}))
}
