package invalidate

import (
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/inbox"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

const subjectTenantSuspended = "melmastoon.tenant.suspended.v1"

// tenantSuspended is the used part of the payload.
type tenantSuspended struct {
	TenantID    string    `json:"tenantId"`
	Reason      string    `json:"reason"`
	SuspendedAt eventTime `json:"suspendedAt"`
}

// tenantSuspended hides a tenant from guests, unless a newer event of the tenant was recorded.
func (p *handlers) tenantSuspended() web.Handler {
	return p.receive(subjectTenantSuspended, func(payload []byte) (inbox.Effect, error) {
		e, err := decodePayload[tenantSuspended](payload)
		if err != nil {
			return inbox.Effect{}, err
		}
		return p.statusEffect("payload.suspendedAt", tenantStatus{tenantID: e.TenantID, suspended: true, changedAt: time.Time(e.SuspendedAt), reason: e.Reason})
	})
}
