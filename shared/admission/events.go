package admission

import (
	"context"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Events are events of this session, each of all sessions, for the transaction that makes them true; none without
// consent. Record is for those that no transaction goes with.
func (g *Guest) Events(ctx context.Context, payloads ...event.Payload) []event.Event {
	if !g.Emits() {
		return nil
	}
	call := web.From(ctx)
	events := make([]event.Event, len(payloads))
	for i, p := range payloads {
		events[i] = event.New(event.Meta{
			SessionID: g.ID, RequestID: call.ID, Traceparent: call.Traceparent, Instance: g.door.instance, Now: g.LastSeenAt,
		}, p)
	}
	return events
}
