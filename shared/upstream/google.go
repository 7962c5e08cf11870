package upstream

import (
	"context"

	"melmastoon.ghasi.io/bff-consumer/shared/gcptoken"
)

// GoogleTokenSource is the TokenSource on Google Cloud: ID tokens of the service account of this
// process.
type GoogleTokenSource struct{}

// Token returns the ID token for an audience. A token in the memory of the process, with at least 3
// min 45 s left, costs a mutex for a moment. Otherwise Token waits for the metadata server until
// ctx ends, at most 2 s; concurrent callers for an audience share the request, which goes on for
// the next caller if ctx ends. The error is that of ctx or of the request; outside Google Cloud
// there is no metadata server, and Token fails. Safe for concurrent use.
func (GoogleTokenSource) Token(ctx context.Context, audience string) (string, error) {
	return gcptoken.Default().IDToken(ctx, audience)
}
