package erasure

import (
	"context"
	"errors"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// HandleCleared finishes the erasure of a session, within 1.5 s, if err is session.ErrCleared, and
// returns ClearedProblem then, also if the erasure fails (logged only). Any other err is returned
// unchanged and at no cost, nil included. session.ErrCleared from Postgres means that an erasure
// runs at the same time or died half-way, and Redis may still have the session. After a successful
// erasure, the guest's next request gets a new session. The time and failures are those of
// TryFinish.
func (e *Eraser) HandleCleared(ctx context.Context, sessionID string, err error) error {
	if !errors.Is(err, session.ErrCleared) {
		return err
	}
	e.TryFinish(ctx, sessionID)
	return ClearedProblem(err)
}

// ClearedProblem returns the problem UpstreamUnavailable (503) for a guest whose session was
// cleared while the request ran. The guest may retry after one second. err is for the log and may
// be nil. The function does no I/O and never returns nil.
func ClearedProblem(err error) error {
	return problem.New(problem.UpstreamUnavailable, "The session was cleared at the same time. Please try again.", err).WithRetryAfter(time.Second)
}

// TryFinish calls Finish, within 1.5 s, for a session that a request found cleared, and logs a
// failure as the only consequence. A later request with the session tries again only while Redis
// has the session's hash. After that the rest expires: idempotent answers after 24 hours, a
// last-seen time after 30 days; Postgres refuses buffered events.
func (e *Eraser) TryFinish(ctx context.Context, sessionID string) {
	defer web.FromContext(ctx).Phase("erase")()
	if err := e.Finish(ctx, sessionID); err != nil {
		web.FromContext(ctx).AddLogField("clearUnfinished", err.Error())
	}
}
