package upstream

import (
	"context"

	"melmastoon.ghasi.io/bff-consumer/shared/gcptoken"
)

// GoogleTokenSource is the TokenSource on Google Cloud: ID tokens of the service account of this
// process.
type GoogleTokenSource struct{}

// Token returns the ID token for an audience, from the memory of the process or from the metadata
// server, within the deadline of ctx.
func (GoogleTokenSource) Token(ctx context.Context, audience string) (string, error) {
	return gcptoken.Default().IDToken(ctx, audience)
}
