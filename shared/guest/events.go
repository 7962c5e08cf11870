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

// Record buffers an event of this session until Finish, dated with the time of this request; it
// drops the event if the guest opted out of telemetry, as far as known now. rate is the share of
// sessions that report the subject, above 0 up to 1 (0 counts as 1); the caller sampled by
// event.IsSampled. Record uses memory only, takes a mutex of the process for a moment (see NewID),
// and never fails. Without Finish the event is lost.
func (g *Guest) Record(ctx context.Context, p event.Payload, rate float64) {
	g.addEvent(ctx, p, event.Meta{Now: g.LastSeenAt, SamplingRate: rate})
}

// RecordOnce is Record, with the rate 1, for an event from the client, who may report the same
// event twice. The caller derives the same eventID for the same event (see id.Derive); an empty
// eventID means a new id. at is the time of the event. RecordOnce buffers each call: Postgres drops
// the repetition, because the outbox stores each id once.
func (g *Guest) RecordOnce(ctx context.Context, eventID string, at time.Time, p event.Payload) {
	g.addEvent(ctx, p, event.Meta{Now: at, ID: eventID})
}

// NewID returns an id whose ULID is greater than in every earlier id of NewID, Record and Events of
// this request; ids given to RecordOnce do not count. It never fails and takes a mutex of the
// process for a moment.
func (g *Guest) NewID(p id.Prefix) string { return g.ids.New(p, time.Now()) }

func (g *Guest) addEvent(ctx context.Context, p event.Payload, m event.Meta) {
	if !g.AllowsEvents() {
		return
	}
	g.events = append(g.events, g.newEvent(ctx, p, m))
}

// newEvent adds session, request and producer to a payload, and mints an id if m has none.
func (g *Guest) newEvent(ctx context.Context, p event.Payload, m event.Meta) event.Event {
	call := web.FromContext(ctx)
	m.SessionID, m.RequestID, m.Traceparent, m.Instance = g.ID, call.ID, call.Traceparent, g.controller.instance
	if m.ID == "" {
		m.ID = g.ids.New(id.Event, m.Now)
	}
	return event.New(m, p)
}

// Events returns the events for the transaction that makes payloads true, or nil if the guest opted
// out of telemetry, as far as known now. Every session reports these payloads, without sampling.
// The buffered events come first: a relay may publish the new events as soon as the transaction
// commits, and session.started precedes all other events of a session. Finish writes the buffered
// events again, without effect, because the outbox stores each id once.
//
// Events does not add payloads to the buffer, and each call mints new ids for payloads: use the
// result of one call for all attempts of a transaction. It uses memory only, as Record does, and
// never fails.
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

// QueueEvents queues Events on the batch of the transaction that makes payloads true. For a guest
// who opted out of telemetry, QueueEvents queues the record of the opt-out instead: jobs that
// report on the transaction's rows later see the record alone. It sends nothing. It returns an
// error for an event without a JSON form, and leaves the batch unchanged then; an error of Postgres
// is an error of the batch.
func (g *Guest) QueueEvents(ctx context.Context, batch *pgx.Batch, payloads ...event.Payload) error {
	if !g.AllowsEvents() {
		session.RecordOptOut(batch, g.ID, g.LastSeenAt)
		return nil
	}
	return outbox.Queue(batch, g.Events(ctx, payloads...)...)
}
