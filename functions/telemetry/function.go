// Package telemetry owns the three routes for client events: clicks, page views and steps of the
// booking funnel. The package validates reports and records events; publishing is the relay's task.
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

// NewHandlers returns the handlers of all telemetry routes.
func NewHandlers(p *wiring.Deps) *Handlers {
	return &Handlers{p.Guests.WithClass(gate.Telemetry), p.Sessions}
}
