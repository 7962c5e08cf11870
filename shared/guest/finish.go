package guest

import (
	"context"
	"errors"
	"net/http"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// FinishResult reports the failures of Finish. Most routes ignore the result.
type FinishResult struct {
	SaveErr   error // why Redis did not save the session; session.ErrCleared: the guest cleared it
	EventsErr error // why events were lost
}

// Finish writes the changes of the request. Call it once, before writing the response, because
// nothing runs after the response. Its costs are:
//
//   - A Redis round trip of at most 100 ms, or 800 ms with WithLongTimeout, for the changed
//     session, history and more (both may be nil). Unknown scripts, or a session cleared meanwhile,
//     take another round trip within the same time. There is no round trip for a request without
//     changes and within a minute of the guest's last saved request, unless history or more adds a
//     command, events are buffered, or the client solved a challenge now.
//   - With events, up to 300 ms of Postgres, and up to 500 ms of Redis if Postgres fails; see
//     outbox.Recorder.Record. A changed locale or currency adds an event.
//   - Up to 150 ms of Postgres if Postgres refuses all events, and up to 1.5 s to finish an
//     erasure.
//
// Finish sets the session cookie, unless it learns that the guest cleared the session, and makes
// the response private. A failed write does not fail the request: Finish returns and logs the
// failure. For a degraded session, Finish does not call more and saves nothing; SaveErr is
// redisclient.ErrUnavailable then, and is not logged. SaveErr is an error of any command of the
// round trip, including the commands of more, or tells that Redis lost the session since Begin.
// Without Postgres, the events wait in Redis if the guest's consent is known, and are lost
// otherwise. Finish drops the events if Redis knows that the guest opted out or cleared the
// session. A disconnect of the client ends nothing of this.
func (c *Controller) Finish(
	ctx context.Context, w http.ResponseWriter, g *Guest, history *session.HistoryEntry, more func(redis.Pipeliner),
) FinishResult {
	defer web.FromContext(ctx).Phase("finish")()
	return c.finishResponse(ctx, w, g, c.save(ctx, g, history, more))
}

// FinishRequired is Finish, without a history, for a request that fails unless Redis takes its
// changes. It costs as much as Finish. On a failure of Redis, or if Redis lost the session since
// Begin, FinishRequired returns the error, writes no event and sets no cookie; some of the commands
// may have taken effect. For a degraded session the error is redisclient.ErrUnavailable, and more
// does not run. It returns session.ErrCleared if the guest cleared the session meanwhile, also if
// only Postgres knows; Redis may have taken the changes then. A failure to write the events is
// logged only.
func (c *Controller) FinishRequired(ctx context.Context, w http.ResponseWriter, g *Guest, more func(redis.Pipeliner)) error {
	defer web.FromContext(ctx).Phase("finish")()
	if err := c.save(ctx, g, nil, more); err != nil {
		return err
	}
	return c.finishResponse(ctx, w, g, nil).SaveErr
}

// finishResponse writes the events and the response headers. saveErr is the result of save.
func (c *Controller) finishResponse(ctx context.Context, w http.ResponseWriter, g *Guest, saveErr error) FinishResult {
	call := web.FromContext(ctx)
	result := FinishResult{SaveErr: saveErr}
	if saveErr != nil && !g.Degraded {
		call.AddLogField("sessionNotSaved", saveErr.Error())
	}
	if len(g.events) > 0 {
		taken, err := c.outbox.Record(ctx, g.ConsentKnown(), g.events...)
		if result.EventsErr = err; err != nil {
			call.AddLogField("telemetryLost", err.Error())
		} else if taken == 0 && c.isCleared(ctx, g) {
			result.SaveErr = session.ErrCleared
		}
	}
	if !errors.Is(result.SaveErr, session.ErrCleared) {
		session.SetCookie(w, g.ID)
	}
	web.MarkPrivate(w)
	return result
}

// isCleared finds out why Postgres took none of a guest's events. If the guest cleared the session,
// Redis does not know yet, so isCleared finishes the erasure. Otherwise the guest opted out of
// telemetry, or the client sent the events twice.
func (c *Controller) isCleared(ctx context.Context, g *Guest) bool {
	cleared, err := c.sessions.IsCleared(ctx, g.ID)
	if err != nil || !cleared {
		return false
	}
	c.eraser.TryFinish(ctx, g.ID)
	return true
}

// HandleCleared finishes the erasure of g's session, within 1.5 s, if err is session.ErrCleared,
// and returns a retriable 503 problem then, also if the erasure fails (logged only). Any other err
// is returned unchanged and at no cost, nil included. See erasure.Eraser.HandleCleared.
func (c *Controller) HandleCleared(ctx context.Context, g *Guest, err error) error {
	return c.eraser.HandleCleared(ctx, g.ID, err)
}

// errSessionMissing means that Redis lost the session between Begin and Finish. The guest's next
// request rebuilds the session.
var errSessionMissing = errors.New("guest: the session was lost meanwhile")

// save writes the session to Redis. The reply tells whether the guest opted out of telemetry or
// cleared the session since Begin: save drops the events in either case. The reply also tells the
// preferences changed first by this request: save adds their events.
func (c *Controller) save(ctx context.Context, g *Guest, history *session.HistoryEntry, more func(redis.Pipeliner)) error {
	if g.Degraded {
		return redisclient.ErrUnavailable
	}
	savesSession := g.NeedsSave() || history != nil || len(g.events) > 0
	pipe := c.pipeline()
	g.check.EnqueueUpdates(ctx, pipe, g.ID, g.New)
	var saveCmd *redis.Cmd
	if savesSession {
		saveCmd = c.sessions.EnqueueSave(ctx, pipe, g.Session, history)
	}
	if more != nil {
		more(pipe)
	}
	if pipe.Len() == 0 {
		return nil
	}
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.timeout) // also after a disconnect
	defer cancel()
	execErr := lua.Exec(within, pipe)
	if !savesSession {
		return execErr
	}
	saved, err := c.sessions.ResolveSave(g.Session, saveCmd)
	switch {
	case err != nil:
		return err
	case saved.Cleared:
		g.events = nil
		// After a failure, the sweep removes the id in 30 days, without an event.
		c.sessions.RemoveLastSeen(within, c.rdb, g.ID)
		return session.ErrCleared
	case saved.Missing:
		return errSessionMissing // the events stay: Postgres decides about them
	case saved.OptedOut:
		g.events = nil
	}
	if p := saved.Locale; p != nil {
		g.Record(ctx, event.LocaleChanged{
			GuestSessionID: g.ID, PreviousLocale: p.From, NewLocale: p.To, Trigger: p.Trigger, OccurredAt: g.LastSeenAt,
		}, 1)
	}
	if p := saved.Currency; p != nil {
		g.Record(ctx, event.CurrencyChanged{
			GuestSessionID: g.ID, PreviousCurrency: p.From, NewCurrency: p.To, Trigger: p.Trigger, OccurredAt: g.LastSeenAt,
		}, 1)
	}
	return execErr
}
