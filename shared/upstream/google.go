package upstream

import (
	"context"

	"melmastoon.ghasi.io/bff-consumer/shared/account"
)

// Google is the TokenSource of the real platform: ID tokens of the account this process runs as.
type Google struct{}

// Token waits no longer than ctx says.
func (Google) Token(ctx context.Context, audience string) (string, error) {
	return account.Own().ID(ctx, audience)
}
