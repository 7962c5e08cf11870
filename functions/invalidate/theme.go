package invalidate

import (
	"context"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/inbox"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const subjectThemePublished = "melmastoon.theme.published.v1"

// themePublished is the used part of the payload.
type themePublished struct {
	TenantID string `json:"tenantId"`
}

// themePublished invalidates the tenant's brand and every cache entry with the tag of the tenant.
func (p *handlers) themePublished() web.Handler {
	return p.receive(subjectThemePublished, func(payload []byte) (inbox.Effect, error) {
		e, err := decodePayload[themePublished](payload)
		return inbox.Effect{AfterCommit: func(ctx context.Context) (int, error) { return p.cache.Invalidate(ctx, cache.TenantTag(e.TenantID)) }}, err
	})
}
