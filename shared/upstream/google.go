package upstream

import (
	"context"
	"fmt"
	"sync"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials/idtoken"
	"golang.org/x/sync/singleflight"
)

// Google is the TokenSource of the real platform: ID tokens of the account this process runs as. It asks for nothing
// until the first call to an audience, keeps each token until shortly before it expires, and after a failure asks
// again at the next call.
type Google struct {
	credentials sync.Map // audience → *auth.Credentials, which keeps the token
	flight      singleflight.Group
}

// Token waits no longer than ctx says; what it started goes on without it, up to 2 s, for the next caller.
func (g *Google) Token(ctx context.Context, audience string) (string, error) {
	// The library may look around for credentials without a context, and makes callers queue for a lock while it
	// fetches: both happen out of the callers' way.
	fetched := g.flight.DoChan(audience, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		return g.fetch(ctx, audience)
	})
	select {
	case r := <-fetched:
		if r.Err != nil {
			return "", fmt.Errorf("upstream: fetch id token: %w", r.Err)
		}
		return r.Val.(string), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (g *Google) fetch(ctx context.Context, audience string) (string, error) {
	kept, ok := g.credentials.Load(audience)
	if !ok {
		fresh, err := idtoken.NewCredentials(&idtoken.Options{Audience: audience})
		if err != nil {
			return "", err
		}
		kept, _ = g.credentials.LoadOrStore(audience, fresh)
	}
	token, err := kept.(*auth.Credentials).Token(ctx)
	if err != nil {
		return "", err
	}
	return token.Value, nil
}
