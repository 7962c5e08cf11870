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

// tenantStatus is what an event says of a tenant.
type tenantStatus struct {
	tenantID  string
	suspended bool
	changedAt time.Time
	reason    string // of a suspension
}

const unspecifiedReason = "unspecified" // the reason of a suspension that has none

// maxClockSkew is how much later than ours a producer's clock may be.
const maxClockSkew = 24 * time.Hour

// statusEffect is the work of a change of standing, the time of which is at a place in the event. The newest event of a tenant
// decides, in whatever order they come; so one of the far future would decide for ever, and has no effect.
func (p *handlers) statusEffect(place string, s tenantStatus) (inbox.Effect, error) {
	if s.changedAt.After(p.now().Add(maxClockSkew)) {
		return inbox.Effect{}, errors.New("the event is wrong: " + place + ": more than a day ahead")
	}
	uuid, err := id.UUID(id.Tenant, s.tenantID)
	if err != nil {
		return inbox.Effect{}, errors.New("the event is wrong: payload.tenantId: not an id") // unreachable: the schema has looked
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

// recordStatus writes the standing unless a newer one is known; of two at one time the suspension holds, because a guest
// kept out wrongly is better than a booking that cannot be. The row stays locked until the transaction ends, so the
// mirror of suspended tenants, which minting a handoff looks at, follows in the same order.
func recordStatus(ctx context.Context, tx pgx.Tx, tenant [16]byte, s tenantStatus) error {
	decided, err := tx.Exec(ctx, `
		INSERT INTO bff_consumer.tenant_standing AS known (tenant_id, suspended, changed_at)
		VALUES ($1, $2, $3)
		ON CONFLICT (tenant_id) DO UPDATE
		SET suspended = excluded.suspended, changed_at = excluded.changed_at
		WHERE excluded.changed_at > known.changed_at
		   OR excluded.changed_at = known.changed_at AND excluded.suspended AND NOT known.suspended`,
		tenant, s.suspended, s.changedAt)
	if err != nil {
		return fmt.Errorf("invalidate: record the standing: %w", err)
	}
	if decided.RowsAffected() == 0 {
		return nil // something newer is known
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
		return fmt.Errorf("invalidate: mirror the suspension: %w", err)
	}
	return nil
}

// applyStatus tells Redis the standing that is recorded now, which need not be that of the event at hand: two handlers of
// one tenant may get here in the other order than they committed. So it holds the row meanwhile, for one round trip
// to Redis; that may happen twice, and means the same each time.
func (p *handlers) applyStatus(ctx context.Context, uuid [16]byte, tenant string) error {
	return pgx.BeginFunc(ctx, p.db, func(tx pgx.Tx) error {
		var suspended bool
		err := tx.QueryRow(ctx, `
			SELECT suspended
			FROM bff_consumer.tenant_standing
			WHERE tenant_id = $1
			FOR UPDATE`, uuid).Scan(&suspended)
		if err != nil {
			return fmt.Errorf("invalidate: read the standing: %w", err)
		}
		web.FromContext(ctx).AddLogField("suspended", suspended)
		if suspended {
			return p.tenants.Suspend(ctx, tenant)
		}
		return p.tenants.Reinstate(ctx, tenant)
	})
}
