package erasure

import (
	"context"
	"errors"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// HandleCleared returns the guest's problem for an error of Postgres. session.ErrCleared means that
// an erasure of the session runs at the same time or died half-way, and Redis may still have the
// session. HandleCleared then finishes the erasure, in up to 1.5 s, so that the guest's next
// request gets a new session, and returns ClearedProblem. Any other err is returned unchanged.
func (e *Eraser) HandleCleared(ctx context.Context, sessionID string, err error) error {
	if !errors.Is(err, session.ErrCleared) {
		return err
	}
	e.TryFinish(ctx, sessionID)
	return ClearedProblem(err)
}

// ClearedProblem returns the problem for a guest whose session was cleared while the request ran.
// The guest may retry after one second.
func ClearedProblem(err error) error {
	return problem.New(problem.UpstreamUnavailable, "The session was cleared at the same time. Please try again.", err).WithRetryAfter(time.Second)
}

// TryFinish calls Finish for a session that a request found cleared. A failure is logged only: the
// next request with the session tries again.
func (e *Eraser) TryFinish(ctx context.Context, sessionID string) {
	defer web.FromContext(ctx).Phase("erase")()
	if err := e.Finish(ctx, sessionID); err != nil {
		web.FromContext(ctx).AddLogField("clearUnfinished", err.Error())
	}
}
