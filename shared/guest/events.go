package guest

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Record buffers an event of this session until Finish. It does nothing if the guest opted out of telemetry. rate is the share
// of sessions that report the subject; the caller has asked event.IsSampled.
func (g *Guest) Record(ctx context.Context, p event.Payload, rate float64) {
	g.addEvent(ctx, p, event.Meta{Now: g.LastSeenAt, SamplingRate: rate})
}

// RecordOnce is Record for an event that the client reports and may report twice. The caller derives the same eventID for the
// same event (see id.Derive); at is when the event happened.
func (g *Guest) RecordOnce(ctx context.Context, eventID string, at time.Time, p event.Payload) {
	g.addEvent(ctx, p, event.Meta{Now: at, ID: eventID})
}

// NewID returns an id that sorts after every id this request minted before.
func (g *Guest) NewID(p id.Prefix) string { return g.ids.New(p, time.Now()) }

func (g *Guest) addEvent(ctx context.Context, p event.Payload, m event.Meta) {
	if !g.AllowsEvents() {
		return
	}
	g.events = append(g.events, g.newEvent(ctx, p, m))
}

// newEvent wraps a payload with the session and the request. It mints an id unless m has one.
func (g *Guest) newEvent(ctx context.Context, p event.Payload, m event.Meta) event.Event {
	call := web.FromContext(ctx)
	m.SessionID, m.RequestID, m.Traceparent, m.Instance = g.ID, call.ID, call.Traceparent, g.controller.instance
	if m.ID == "" {
		m.ID = g.ids.New(id.Event, m.Now)
	}
	return event.New(m, p)
}

// Events returns the events to write in the transaction that makes payloads true, or nil if the guest opted out of telemetry.
// payloads report on every session, unsampled. The buffered events come first, because a relay may publish the new ones as
// soon as the transaction commits, and session.started has to precede what the session did. Finish writes the buffered
// events again, which changes nothing: each id is stored once.
func (g *Guest) Events(ctx context.Context, payloads ...event.Payload) []event.Event {
	if !g.AllowsEvents() {
		return nil
	}
	events := slices.Clone(g.events)
	for _, p := range payloads {
		events = append(events, g.newEvent(ctx, p, event.Meta{Now: g.LastSeenAt}))
	}
	return events
}

// QueueEvents queues Events on the batch of the transaction that makes payloads true. If the guest opted out of telemetry, it
// queues the record of the opt-out instead, because later events about the transaction's rows come from jobs that see the
// record alone. It returns an error if an event cannot be encoded.
func (g *Guest) QueueEvents(ctx context.Context, batch *pgx.Batch, payloads ...event.Payload) error {
	if !g.AllowsEvents() {
		session.RecordOptOut(batch, g.ID, g.LastSeenAt)
		return nil
	}
	return outbox.Queue(batch, g.Events(ctx, payloads...)...)
}
