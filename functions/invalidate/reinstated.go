package invalidate

import (
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/inbox"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const subjectTenantReinstated = "melmastoon.tenant.reinstated.v1"

type tenantReinstated struct {
	TenantID     string `json:"tenantId"`
	ReinstatedAt moment `json:"reinstatedAt"`
}

// tenantReinstated lets guests to a tenant again, unless something newer is known of it.
func (p *parts) tenantReinstated() web.Handler {
	return p.receive(subjectTenantReinstated, func(payload []byte) (inbox.Work, error) {
		e, err := decode[tenantReinstated](payload)
		if err != nil {
			return inbox.Work{}, err
		}
		return p.stand("payload.reinstatedAt", standing{tenant: e.TenantID, since: time.Time(e.ReinstatedAt)})
	})
}
