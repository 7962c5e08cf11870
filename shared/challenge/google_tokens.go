package challenge

import (
	"context"

	"melmastoon.ghasi.io/bff-consumer/shared/gcptoken"
)

// googleTokens are of the account this process runs as.
type googleTokens struct{}

func (googleTokens) Token(ctx context.Context) (string, error) {
	return gcptoken.Default().AccessToken(ctx, gcptoken.ScopeCloudPlatform)
}
