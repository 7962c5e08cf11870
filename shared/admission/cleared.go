package admission

import (
	"context"
	"errors"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Refused is what a guest is told of a request that Postgres refused with err. When that is session.ErrCleared, a clear
// runs at the same time or died half-way, and Redis may still have the session: the clear is finished first, so that the
// guest who asks again gets a new one. Any other error it returns as it is.
func (d *Door) Refused(ctx context.Context, g *Guest, err error) error {
	if !errors.Is(err, session.ErrCleared) {
		return err
	}
	d.finish(ctx, g)
	return Cleared(err)
}

// Cleared is what a guest is told whose session was cleared while the request ran.
func Cleared(err error) error {
	return problem.New(problem.UpstreamUnavailable, "The session was cleared at the same time. Please try again.", err).After(time.Second)
}

// isCleared finds out why Postgres took no event of a guest. Redis has not heard of it if the session was cleared, so
// the clear is finished; else the guest refused, or the client repeats itself.
func (d *Door) isCleared(ctx context.Context, g *Guest) bool {
	cleared, err := d.sessions.Cleared(ctx, g.ID)
	if err != nil || !cleared {
		return false
	}
	d.finish(ctx, g)
	return true
}

// finish has what is left of a cleared session forgotten. If it fails, whoever meets the session next tries again.
func (d *Door) finish(ctx context.Context, g *Guest) {
	defer web.From(ctx).Phase("erase")()
	if err := d.burial.Finish(ctx, g.ID); err != nil {
		web.From(ctx).Note("clearUnfinished", err.Error())
	}
}
