// Package telemetry owns the three routes for client events: clicks, page views and steps of the
// booking funnel. The package validates reports and records events; publishing is the relay's task.
//
// Admission to every route is a Redis round trip of at most 100 ms, also for a request refused as
// malformed (400, 413, 422). Admission can add 150 ms of Postgres for the consent of a session lost
// by Redis, and 300 ms of Redis or Postgres for the suspended tenants. A client over a limit (429)
// costs another 100 ms of Redis; a client with the score of a bot up to 400 ms of reCAPTCHA and 300
// ms of Postgres, and 500 ms of Redis if Postgres fails. Without Redis each instance enforces the
// limits by itself. An error other than a named problem is 500.
package telemetry

import (
	"context"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // required by the platform build
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"melmastoon.ghasi.io/bff-consumer/shared/gate"
	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	_ "melmastoon.ghasi.io/bff-consumer/shared/postgres/connector"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
)

func init() {
	register("TelemetryClick", "POST "+web.BasePath+"/telemetry/click", func(h *Handlers) web.Handler { return h.Click })
	register("TelemetryPageView", "POST "+web.BasePath+"/telemetry/page-view", func(h *Handlers) web.Handler { return h.PageView })
	register("TelemetryFunnel", "POST "+web.BasePath+"/telemetry/funnel", func(h *Handlers) web.Handler { return h.Funnel })
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

// NewHandlers returns the handlers of all telemetry routes. NewHandlers does no I/O and cannot
// fail.
func NewHandlers(p *wiring.Deps) *Handlers {
	return &Handlers{p.Guests.WithClass(gate.Telemetry), p.Sessions}
}
