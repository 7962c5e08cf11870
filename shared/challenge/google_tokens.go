package challenge

import (
	"context"

	"melmastoon.ghasi.io/bff-consumer/shared/gcptoken"
)

// googleTokens returns access tokens of the account of this process.
type googleTokens struct{}

func (googleTokens) Token(ctx context.Context) (string, error) {
	return gcptoken.Default().AccessToken(ctx, gcptoken.ScopeCloudPlatform)
}
