package invalidate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/inbox"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// tenantStatus is a change of a tenant's status by an event.
type tenantStatus struct {
	tenantID  string
	suspended bool
	changedAt time.Time
	reason    string // of a suspension
}

const unspecifiedReason = "unspecified" // the stored reason of a suspension without a reason

// maxClockSkew limits how far a producer's clock may be ahead of ours.
const maxClockSkew = 24 * time.Hour

// statusEffect returns the effect of a status change; field names the member of the event with the
// time of the change. The newest event of a tenant decides, in whatever order the events arrive. So
// an event of the far future would decide for ever: statusEffect refuses times more than a day
// ahead.
func (p *handlers) statusEffect(field string, s tenantStatus) (inbox.Effect, error) {
	if s.changedAt.After(p.now().Add(maxClockSkew)) {
		return inbox.Effect{}, errors.New("the event is invalid: " + field + ": more than a day ahead")
	}
	uuid, err := id.UUID(id.Tenant, s.tenantID)
	if err != nil {
		// unreachable: the schema checks the id
		return inbox.Effect{}, errors.New("the event is invalid: payload.tenantId: not an id")
	}
	return inbox.Effect{
		InTx: func(ctx context.Context, tx pgx.Tx) error { return recordStatus(ctx, tx, uuid, s) },
		AfterCommit: func(ctx context.Context) (int, error) {
			if err := p.applyStatus(ctx, uuid, s.tenantID); err != nil {
				return 0, err
			}
			return p.cache.Invalidate(ctx, cache.TenantTag(s.tenantID))
		},
	}, nil
}

// recordStatus writes the status to tenant_standing unless a newer change is recorded, and mirrors
// it in tenant_suspended_cache, where the minting of a handoff looks. At equal times the suspension
// wins: a guest refused by mistake is better than a booking that cannot be fulfilled.
// tenant_standing's row stays locked until the transaction ends, so the mirror changes in the same
// order. It takes one or two statements.
func recordStatus(ctx context.Context, tx pgx.Tx, tenant [16]byte, s tenantStatus) error {
	updated, err := tx.Exec(ctx, `
		INSERT INTO bff_consumer.tenant_standing AS recorded (tenant_id, suspended, changed_at)
		VALUES ($1, $2, $3)
		ON CONFLICT (tenant_id) DO UPDATE
		SET suspended = excluded.suspended, changed_at = excluded.changed_at
		WHERE excluded.changed_at > recorded.changed_at
		   OR excluded.changed_at = recorded.changed_at AND excluded.suspended AND NOT recorded.suspended`,
		tenant, s.suspended, s.changedAt)
	if err != nil {
		return fmt.Errorf("invalidate: record the status: %w", err)
	}
	if updated.RowsAffected() == 0 {
		return nil // a newer change is recorded
	}
	if s.suspended {
		_, err = tx.Exec(ctx, `
			INSERT INTO bff_consumer.tenant_suspended_cache (tenant_id, suspended_at, reason)
			VALUES ($1, $2, $3)
			ON CONFLICT (tenant_id) DO UPDATE
			SET suspended_at = excluded.suspended_at, reason = excluded.reason, refreshed_at = now()`,
			tenant, s.changedAt, cmp.Or(strings.ReplaceAll(s.reason, "\x00", ""), unspecifiedReason))
	} else {
		_, err = tx.Exec(ctx, `
			DELETE FROM bff_consumer.tenant_suspended_cache
			WHERE tenant_id = $1`, tenant)
	}
	if err != nil {
		return fmt.Errorf("invalidate: mirror the status: %w", err)
	}
	return nil
}

// applyStatus writes the recorded status of a tenant to the suspended set in Redis. The recorded
// status may be newer than the event at hand: two events of a tenant may arrive here in another
// order than their commits. So applyStatus reads the status FOR UPDATE and holds the row lock
// during one round trip to Redis. It is idempotent. It takes three round trips to Postgres besides,
// and fails without Postgres or Redis.
func (p *handlers) applyStatus(ctx context.Context, uuid [16]byte, tenant string) error {
	return pgx.BeginFunc(ctx, p.db, func(tx pgx.Tx) error {
		var suspended bool
		err := tx.QueryRow(ctx, `
			SELECT suspended
			FROM bff_consumer.tenant_standing
			WHERE tenant_id = $1
			FOR UPDATE`, uuid).Scan(&suspended)
		if err != nil {
			return fmt.Errorf("invalidate: read the status: %w", err)
		}
		web.FromContext(ctx).AddLogField("suspended", suspended)
		if suspended {
			return p.tenants.Suspend(ctx, tenant)
		}
		return p.tenants.Reinstate(ctx, tenant)
	})
}
