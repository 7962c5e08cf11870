// Package telemetry is the front door for what clients report: clicks, page views, steps of the funnel. It registers
// its entry points and builds them; each route has a file of its own.
package telemetry

import (
	"context"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // the platform's packer demands it
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	_ "melmastoon.ghasi.io/bff-consumer/shared/postgres/connector"
	"melmastoon.ghasi.io/bff-consumer/shared/setup"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func init() {
	register("TelemetryClick", "POST "+web.Base+"/telemetry/click", func(d *Desk) web.Handler { return d.Click })
	register("TelemetryPageView", "POST "+web.Base+"/telemetry/page-view", func(d *Desk) web.Handler { return d.PageView })
	register("TelemetryFunnel", "POST "+web.Base+"/telemetry/funnel", func(d *Desk) web.Handler { return d.Funnel })
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
