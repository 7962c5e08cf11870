package upstream

import (
	"context"

	"melmastoon.ghasi.io/bff-consumer/shared/gcptoken"
)

// GoogleTokenSource is the TokenSource of the real platform: ID tokens of the account this process runs as.
type GoogleTokenSource struct{}

// Token waits no longer than ctx says.
func (GoogleTokenSource) Token(ctx context.Context, audience string) (string, error) {
	return gcptoken.Default().IDToken(ctx, audience)
}
