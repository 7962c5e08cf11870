package invalidate

import (
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/inbox"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const subjectTenantReinstated = "melmastoon.tenant.reinstated.v1"

// tenantReinstated is the used part of the payload.
type tenantReinstated struct {
	TenantID     string    `json:"tenantId"`
	ReinstatedAt eventTime `json:"reinstatedAt"`
}

// tenantReinstated shows a tenant to guests again, unless a newer event of the tenant was recorded.
func (p *handlers) tenantReinstated() web.Handler {
	return p.receive(subjectTenantReinstated, func(payload []byte) (inbox.Effect, error) {
		e, err := decodePayload[tenantReinstated](payload)
		if err != nil {
			return inbox.Effect{}, err
		}
		return p.statusEffect("payload.reinstatedAt", tenantStatus{tenantID: e.TenantID, changedAt: time.Time(e.ReinstatedAt)})
	})
}
