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

// standing is what an event says of a tenant.
type standing struct {
	tenant    string
	suspended bool
	since     time.Time
	reason    string // of a suspension
}

const unsaid = "unspecified" // the reason of a suspension that has none

// ahead is how much later than ours a producer's clock may be.
const ahead = 24 * time.Hour

// stand is the work of a change of standing, the time of which is at a place in the event. The newest event of a tenant
// decides, in whatever order they come; so one of the far future would decide for ever, and has no effect.
func (p *parts) stand(place string, s standing) (inbox.Work, error) {
	if s.since.After(p.now().Add(ahead)) {
		return inbox.Work{}, errors.New("the event is wrong: " + place + ": more than a day ahead")
	}
	uuid, err := id.UUID(id.Tenant, s.tenant)
	if err != nil {
		return inbox.Work{}, errors.New("the event is wrong: payload.tenantId: not an id") // unreachable: the schema has looked
	}
	return inbox.Work{
		Record: func(ctx context.Context, tx pgx.Tx) error { return record(ctx, tx, uuid, s) },
		Tell: func(ctx context.Context) (int, error) {
			if err := p.apply(ctx, uuid, s.tenant); err != nil {
				return 0, err
			}
			return p.cache.Bust(ctx, cache.Tenant(s.tenant))
		},
	}, nil
}

// record writes the standing unless a newer one is known; of two at one time the suspension holds, because a guest
// kept out wrongly is better than a booking that cannot be. The row stays locked until the transaction ends, so the
// mirror of suspended tenants, which minting a handoff looks at, follows in the same order.
func record(ctx context.Context, tx pgx.Tx, tenant [16]byte, s standing) error {
	decided, err := tx.Exec(ctx, `
		INSERT INTO bff_consumer.tenant_standing AS known (tenant_id, suspended, changed_at)
		VALUES ($1, $2, $3)
		ON CONFLICT (tenant_id) DO UPDATE
		SET suspended = excluded.suspended, changed_at = excluded.changed_at
		WHERE excluded.changed_at > known.changed_at
		   OR excluded.changed_at = known.changed_at AND excluded.suspended AND NOT known.suspended`,
		tenant, s.suspended, s.since)
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
			tenant, s.since, cmp.Or(strings.ReplaceAll(s.reason, "\x00", ""), unsaid))
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

// apply tells Redis the standing that is recorded now, which need not be that of the event at hand: two handlers of
// one tenant may get here in the other order than they committed. So it holds the row meanwhile, for one round trip
// to Redis; that may happen twice, and means the same each time.
func (p *parts) apply(ctx context.Context, uuid [16]byte, tenant string) error {
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
		web.From(ctx).Note("suspended", suspended)
		if suspended {
			return p.tenants.Suspend(ctx, tenant)
		}
		return p.tenants.Reinstate(ctx, tenant)
	})
}
