package challenge

import (
	"context"

	"melmastoon.ghasi.io/bff-consumer/shared/gcptoken"
)

// googleTokens returns access tokens of the account of this process.
type googleTokens struct{}

// Token implements TokenSource. A cached token costs no request; otherwise Token waits for the
// metadata server until ctx ends, at most 2 s, and returns the error of ctx or of the request.
func (googleTokens) Token(ctx context.Context) (string, error) {
	return gcptoken.Default().AccessToken(ctx, gcptoken.ScopeCloudPlatform)
}
