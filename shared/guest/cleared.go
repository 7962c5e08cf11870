package guest

import (
	"context"
	"errors"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// HandleCleared is what a guest is told of a request that Postgres refused with err. When that is session.ErrCleared, a clear
// runs at the same time or died half-way, and Redis may still have the session: the clear is finished first, so that the
// guest who asks again gets a new one. Any other error it returns as it is.
func (d *Controller) HandleCleared(ctx context.Context, g *Guest, err error) error {
	if !errors.Is(err, session.ErrCleared) {
		return err
	}
	d.finishErasure(ctx, g)
	return ClearedProblem(err)
}

// ClearedProblem is what a guest is told whose session was cleared while the request ran.
func ClearedProblem(err error) error {
	return problem.New(problem.UpstreamUnavailable, "The session was cleared at the same time. Please try again.", err).WithRetryAfter(time.Second)
}

// isCleared finds out why Postgres took no event of a guest. Redis has not heard of it if the session was cleared, so
// the clear is finished; else the guest refused, or the client repeats itself.
func (d *Controller) isCleared(ctx context.Context, g *Guest) bool {
	cleared, err := d.sessions.IsCleared(ctx, g.ID)
	if err != nil || !cleared {
		return false
	}
	d.finishErasure(ctx, g)
	return true
}

// finishErasure has what is left of a cleared session forgotten. If it fails, whoever meets the session next tries again.
func (d *Controller) finishErasure(ctx context.Context, g *Guest) {
	defer web.FromContext(ctx).Phase("erase")()
	if err := d.eraser.Finish(ctx, g.ID); err != nil {
		web.FromContext(ctx).AddLogField("clearUnfinished", err.Error())
	}
}
