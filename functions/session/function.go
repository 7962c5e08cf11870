// Package session owns the six routes for a guest's own session: reading, choosing language and
// currency, consent, clearing, and export. Package shared/session owns the stored session; this
// package never writes keys or tables of the session directly.
//
// Admission to every route is a Redis round trip, also for a request refused as malformed (400,
// 413, 422). Admission can add 150 ms of Postgres for the consent of a session lost by Redis, and
// 300 ms of Redis or Postgres for the suspended tenants. A client over a limit (429) costs another
// 100 ms of Redis; a client with the score of a bot up to 400 ms of reCAPTCHA and 300 ms of
// Postgres, and 500 ms of Redis if Postgres fails. Without Redis each instance enforces the limits
// by itself. An error other than a named problem is 500.
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

// NewHandlers returns the handlers of all session routes. NewHandlers does no I/O and cannot fail.
func NewHandlers(p *wiring.Deps) *Handlers {
	return &Handlers{
		guests: p.Guests, longTimeoutGuests: p.Guests.WithLongTimeout(), sessions: p.Sessions, wishlist: wishlist.New(p.Redis, p.DB, p.Keys, p.Now),
		eraser: p.Eraser, outbox: p.Outbox, rdb: p.Redis, db: p.DB, keys: p.Keys, now: p.Now,
	}
}
