package invalidate

import (
	"context"
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/inbox"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const subjectThemePublished = "melmastoon.theme.published.v1"

type themePublished struct {
	TenantID string `json:"tenantId"`
}

// themePublished empties a tenant's brand, and every page that shows it.
func (p *parts) themePublished() web.Handler {
	return p.receive(subjectThemePublished, func(payload []byte) (inbox.Work, error) {
		e, err := decode[themePublished](payload)
		return inbox.Work{Tell: func(ctx context.Context) (int, error) { return p.cache.Bust(ctx, cache.Tenant(e.TenantID)) }}, err
	})
}

// receive answers with what became of each message on the subject.
func (p *parts) receive(subject string, read func(payload []byte) (inbox.Work, error)) web.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		report, err := p.inbox.Receive(r, subject, read)
		if err != nil {
			return err
		}
		return web.WriteJSON(w, http.StatusOK, report)
	}
}
