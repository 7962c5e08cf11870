package invalidate

import (
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/inbox"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const subjectTenantSuspended = "melmastoon.tenant.suspended.v1"

type tenantSuspended struct {
	TenantID    string `json:"tenantId"`
	Reason      string `json:"reason"`
	SuspendedAt moment `json:"suspendedAt"`
}

// tenantSuspended keeps guests from a tenant, unless something newer is known of it.
func (p *parts) tenantSuspended() web.Handler {
	return p.receive(subjectTenantSuspended, func(payload []byte) (inbox.Work, error) {
		e, err := decode[tenantSuspended](payload)
		if err != nil {
			return inbox.Work{}, err
		}
		return p.stand("payload.suspendedAt", standing{tenant: e.TenantID, suspended: true, since: time.Time(e.SuspendedAt), reason: e.Reason})
	})
}
