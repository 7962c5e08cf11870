package guest

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Events are events of this session, each of all sessions, for the transaction that makes them true; none without
// consent. Those recorded so far are the first of them, because a relay may send the others as soon as the transaction has
// ended: that a session began is told before what was done in it, or, where that fails, not at all. Written again when the
// guest leaves, they are there once.
func (g *Guest) Events(ctx context.Context, payloads ...event.Payload) []event.Event {
	if !g.AllowsEvents() {
		return nil
	}
	call := web.FromContext(ctx)
	events := slices.Clone(g.events)
	for _, p := range payloads {
		events = append(events, event.New(event.Meta{
			ID: g.ids.New(id.Event, g.LastSeenAt), SessionID: g.ID, RequestID: call.ID, Traceparent: call.Traceparent,
			Instance: g.controller.instance, Now: g.LastSeenAt,
		}, p))
	}
	return events
}

// QueueEvents puts Events on the batch of the transaction that makes them true. Of a guest who refuses them it puts that on
// record instead: what the transaction writes may be told of later by others, who see the record alone.
func (g *Guest) QueueEvents(ctx context.Context, batch *pgx.Batch, payloads ...event.Payload) error {
	if !g.AllowsEvents() {
		session.RecordOptOut(batch, g.ID, g.LastSeenAt)
		return nil
	}
	return outbox.Queue(batch, g.Events(ctx, payloads...)...)
}
