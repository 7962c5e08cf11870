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
// expires. Clear records session.ended.v1, unless the guest refused telemetry. Handoffs and bot
// verdicts stay for audit, each for its own retention. A request without a stored session (no
// cookie, a cookie of another browser, or a cleared session) is 204 too and erases nothing.
//
// The steps are a Redis round trip of at most 800 ms; a Postgres transaction in one round trip of
// at most 1.5 s, which deletes wishlist and unsent events and marks the id as cleared, so requests
// still in progress cannot write for the id afterwards; and the deletions, 1.5 s at most together,
// in about six round trips to Redis and two to Postgres. Each step ends 100 ms before the request's
// budget of 2.5 s, and continues when the client hangs up.
//
// Without Redis a request with a genuine cookie is 503 and keeps the cookie; a request without a
// cookie is 204. Without Postgres a request with a stored session is 503 and keeps the cookie; any
// other request is 204. A repetition finishes the deletions only while Redis has the session's
// hash. After that a repetition is 204, and the rest expires: stored answers after 24 h, the last
// visit after 30 days.
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
