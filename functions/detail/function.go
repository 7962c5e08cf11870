// Package detail is the front door for looking at one hotel: its page and its availability. Both answers are for
// everybody who asks for the same; neither knows the guest.
package detail

import (
	"context"
	"errors"
	"fmt"

	_ "github.com/GoogleCloudPlatform/functions-framework-go/funcframework" // the platform's packer demands it
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
	"github.com/caarlos0/env/v11"

	"melmastoon.ghasi.io/bff-consumer/shared/handoff"
	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
)

func init() {
	functions.HTTP("Detail", web.Register("Detail", "GET "+web.BasePath+"/hotels/{propertyId}", openDetail))
	functions.HTTP("Availability", web.Register("Availability", "GET "+web.BasePath+"/hotels/{propertyId}/availability", openAvailability))
}

// environment is what this function reads beside setup.Environment.
type environment struct {
	Link handoff.Link `env:"HANDOFF_LINK"` // where guests book, with {tenantSlug} in it; handoff.DefaultLink
}

func openDetail(ctx context.Context, warmUp *lifecycle.WarmUp) (web.Handler, error) {
	e, err := env.ParseAs[environment]()
	if err != nil {
		err = fmt.Errorf("detail: %w", err)
	}
	p, setupErr := wiring.FromEnv(ctx, warmUp)
	if err := errors.Join(err, setupErr); err != nil {
		return nil, err
	}
	return NewDetail(p, e.Link).Serve, nil
}

func openAvailability(ctx context.Context, warmUp *lifecycle.WarmUp) (web.Handler, error) {
	p, err := wiring.FromEnv(ctx, warmUp)
	if err != nil {
		return nil, err
	}
	return NewAvailability(p).Serve, nil
}
