// Package session owns the six routes for a guest's own session: reading, choosing language and
// currency, consent, clearing, and export. Package shared/session owns the stored session; this
// package never writes keys or tables of the session directly.
package session

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
	register("Session", "GET "+web.BasePath+"/session", func(h *Handlers) web.Handler { return h.Show })
	register("SessionLocale", "POST "+web.BasePath+"/session/locale", func(h *Handlers) web.Handler { return h.Locale })
	register("SessionCurrency", "POST "+web.BasePath+"/session/currency", func(h *Handlers) web.Handler { return h.Currency })
	register("SessionConsent", "POST "+web.BasePath+"/session/consent", func(h *Handlers) web.Handler { return h.Consent })
	register("SessionClear", "POST "+web.BasePath+"/session/clear", func(h *Handlers) web.Handler { return h.Clear })
	register("SessionExport", "GET "+web.BasePath+"/session/export", func(h *Handlers) web.Handler { return h.Export })
}

// register registers an entry point. Opening reads the environment, and a process about to listen
// connects to Redis and Postgres first.
func register(name, pattern string, method func(*Handlers) web.Handler) {
	functions.HTTP(name, web.Register(name, pattern, func(ctx context.Context, warmUp *lifecycle.WarmUp) (web.Handler, error) {
		p, err := wiring.FromEnvWithPostgres(ctx, warmUp)
		if err != nil {
			return nil, err
		}
		return method(NewHandlers(p)), nil
	}))
}

// NewHandlers returns the handlers of all session routes.
func NewHandlers(p *wiring.Deps) *Handlers {
	return &Handlers{
		guests: p.Guests, longTimeoutGuests: p.Guests.WithLongTimeout(), sessions: p.Sessions, wishlist: wishlist.New(p.Redis, p.DB, p.Keys, p.Now),
		eraser: p.Eraser, outbox: p.Outbox, rdb: p.Redis, db: p.DB, keys: p.Keys, now: p.Now,
	}
}
