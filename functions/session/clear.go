package session

import (
	"context"
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Clear answers POST /session/clear with 204: the session is erased and the client's cookie
// expires. A request without a stored session (no cookie, a cookie of another browser, or a cleared
// session) is 204 too.
//
// The steps are a Redis round trip of at most 800 ms; a Postgres transaction of at most 1.5 s,
// which deletes the records and marks the id as cleared, so requests still in progress cannot write
// for the id afterwards; and the deletions in Redis and Postgres, 1.5 s at most together.
//
// Without Redis or Postgres the answer is 503 and the client keeps the cookie. The guest can repeat
// the request, because each step may be repeated.
func (h *Handlers) Clear(w http.ResponseWriter, r *http.Request) error {
	ctx, g, err := h.begin(h.longTimeoutGuests, w, r)
	if err != nil {
		return err
	}
	if !g.New {
		if g.Session.Degraded {
			// without Redis the owner of the cookie is unknown, and the copies there would stay
			return notSavedProblem(nil)
		}
		done := web.FromContext(ctx).Phase("erase")
		err := h.erase(ctx, g)
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

// erase records the end of the session with its event, in Postgres, and then erases every copy. Its
// errors are problems.
func (h *Handlers) erase(ctx context.Context, g *loadedGuest) error {
	now := g.LastSeenAt
	err := h.eraser.Begin(ctx, g.Session, g.Events(ctx, event.SessionEnded{
		GuestSessionID: g.ID, EndedAt: now, Reason: event.ExplicitClear, LastSeenAt: now,
		LifetimeSeconds: max(0, int64(now.Sub(g.CreatedAt).Seconds())),
	})...)
	if err != nil {
		return postgres.Problem(err)
	}
	if err := h.eraser.Finish(ctx, g.ID); err != nil {
		return notSavedProblem(err)
	}
	return nil
}
