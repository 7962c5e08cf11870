// Package telemetry is the front door for what clients report: clicks, page views, steps of the funnel. It registers
// its entry points and builds them; each route has a file of its own.
package telemetry

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
	register("TelemetryClick", "POST "+web.BasePath+"/telemetry/click", func(d *Handlers) web.Handler { return d.Click })
	register("TelemetryPageView", "POST "+web.BasePath+"/telemetry/page-view", func(d *Handlers) web.Handler { return d.PageView })
	register("TelemetryFunnel", "POST "+web.BasePath+"/telemetry/funnel", func(d *Handlers) web.Handler { return d.Funnel })
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
