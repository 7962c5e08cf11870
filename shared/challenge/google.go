package challenge

import (
	"context"
	"sync"
	"time"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
	"golang.org/x/sync/singleflight"
)

const (
	scope    = "https://www.googleapis.com/auth/cloud-platform"
	fetchFor = 2 * time.Second
)

// googleTokens gives OAuth tokens of the account this process runs as. It looks for credentials at the first use that
// succeeds and keeps them; they renew their token by themselves.
type googleTokens struct {
	flight singleflight.Group
	mu     sync.Mutex
	found  *auth.Credentials
}

// Token waits no longer than ctx says; what it started goes on without it, up to 2 s, for the next caller. The library
// may look around for credentials without a context, and makes callers queue while it fetches.
func (g *googleTokens) Token(ctx context.Context) (string, error) {
	fetched := g.flight.DoChan("", func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), fetchFor)
		defer cancel()
		return g.fetch(ctx)
	})
	select {
	case r := <-fetched:
		if r.Err != nil {
			return "", r.Err
		}
		return r.Val.(string), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (g *googleTokens) fetch(ctx context.Context) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.found == nil {
		found, err := credentials.DetectDefault(&credentials.DetectOptions{Scopes: []string{scope}})
		if err != nil {
			return "", err
		}
		g.found = found
	}
	token, err := g.found.Token(ctx)
	if err != nil {
		return "", err
	}
	return token.Value, nil
}
