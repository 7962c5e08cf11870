package session

import (
	"context"
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Clear answers POST /session/clear: it forgets the session and takes its name from the client. First Postgres, in one
// transaction that also records that the id is over, so that requests which still run can write nothing behind it; then
// Redis. When either fails the guest keeps the name and can say it again: each step may be repeated.
func (d *Handlers) Clear(w http.ResponseWriter, r *http.Request) error {
	ctx, v, err := d.begin(d.longTimeoutGuests, w, r)
	if err != nil {
		return err
	}
	if !v.New { // else there is none: no cookie, another browser's, or cleared before
		if v.Session.Degraded {
			return notSavedProblem(nil) // whose the cookie is cannot be told, and half of it would stay
		}
		done := web.FromContext(ctx).Phase("erase")
		err := d.erase(ctx, v)
		done()
		if err != nil {
			return err
		}
	}
	session.ExpireCookie(w)
	web.MarkPrivate(w)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// erase says the end of the session and has it forgotten.
func (d *Handlers) erase(ctx context.Context, v *loadedGuest) error {
	now := v.LastSeenAt
	err := d.eraser.Begin(ctx, v.Session, v.Events(ctx, event.SessionEnded{
		GuestSessionID: v.ID, EndedAt: now, Reason: event.ExplicitClear, LastSeenAt: now,
		LifetimeSeconds: max(0, int64(now.Sub(v.CreatedAt).Seconds())),
	})...)
	if err != nil {
		return postgres.Problem(err)
	}
	if err := d.eraser.Finish(ctx, v.ID); err != nil {
		return notSavedProblem(err)
	}
	return nil
}
