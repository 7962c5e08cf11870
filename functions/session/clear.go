package session

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/idempotency"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wishlist"
)

// Clear answers POST /session/clear: it forgets the session and takes its name from the client. First Postgres, in one
// transaction that also records that the id is over, so that requests which still run can write nothing behind it; then
// Redis. When either fails the guest keeps the name and can say it again: each step may be repeated.
func (d *Desk) Clear(w http.ResponseWriter, r *http.Request) error {
	ctx, v, err := d.admit(r)
	if err != nil {
		return err
	}
	if !v.New { // else there is none: no cookie, another browser's, or cleared before
		if v.Session.Degraded {
			return unsaved(nil) // whose the cookie is cannot be told, and half of it would stay
		}
		done := web.From(ctx).Phase("purge")
		err := d.purge(ctx, v)
		done()
		if err != nil {
			return err
		}
	}
	session.ExpireCookie(w)
	web.Private(w)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (d *Desk) purge(ctx context.Context, v *visit) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeWithin)
	defer cancel()
	composites, err := d.forget(ctx, v)
	if err != nil {
		return postgres.Problem(err)
	}
	if err := d.sessions.Purge(ctx, d.rdb, v.Session, v.lists); err != nil {
		return unsaved(err)
	}
	if err := d.once.ForgetCopies(ctx, composites); err != nil {
		return unsaved(err)
	}
	if err := d.outbox.ForgetSpilled(ctx, v.ID); err != nil {
		return unsaved(err)
	}
	// Once more: an event whose statement began before the burial was committed does not see it, and was not seen.
	var batch pgx.Batch
	outbox.Forget(&batch, v.ID)
	return postgres.Problem(d.db.SendBatch(ctx, &batch).Close())
}

// forget is the part of Postgres. What is left is the ledger of handoffs, whose tokens must not work twice, and
// verdicts of the bot detector: both for audit, both for their own short time. The order counts: unsent events go
// before the last one is written, and that before the id is buried, after which no event of it can be. A second clear
// waits for the first and finds it buried: one end is told.
func (d *Desk) forget(ctx context.Context, v *visit) (composites []string, err error) {
	var batch pgx.Batch
	session.Lock(&batch, v.ID)
	outbox.Forget(&batch, v.ID)
	wishlist.Forget(&batch, v.ID)
	idempotency.Forget(&batch, v.ID, &composites)
	now := v.LastSeenAt
	err = outbox.Queue(&batch, v.Events(ctx, event.SessionEnded{
		GuestSessionID: v.ID, EndedAt: now, Reason: event.ExplicitClear, LastSeenAt: now,
		LifetimeSeconds: max(0, int64(now.Sub(v.CreatedAt).Seconds())),
	})...)
	if err != nil {
		return nil, err
	}
	d.sessions.Bury(&batch, v.Session)
	err = d.db.SendBatch(ctx, &batch).Close() // fills composites
	return composites, err
}
