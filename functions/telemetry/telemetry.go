package telemetry

import (
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/gate"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
)

// Handlers is where clients hand in reports. Its methods are the handlers. Safe for concurrent use.
type Handlers struct {
	guests   *guest.Controller
	sessions *session.Store
}

// NewHandlers makes a Desk.
func NewHandlers(p *wiring.Deps) *Handlers {
	return &Handlers{p.Guests.WithClass(gate.Telemetry), p.Sessions}
}

const maxEvents = 50 // of one request

// report is one event as a client tells it.
type report interface {
	// check says what is wrong with it.
	check(f *validator)
	// subject is that of the event it becomes.
	subject() string
	// about is what all reports may have.
	fields() *commonFields
	// when is the time the client says; "" when it says none.
	occurredAt() string
	// tell makes the event. ids makes the ids that belong to it.
	payload(g *guest.Guest, at time.Time, ids func(id.Prefix) string) event.Payload
	// viewed is the property whose page was opened and how the guest came to it; "" when none was.
	viewedProperty() (property, tenant, source string)
}

// commonFields is what every report may have.
type commonFields struct {
	SearchSessionID string `json:"searchSessionId"`
	EventID         string `json:"eventId"`
}

// parseReports are those of a body: the one it is, or those in its events.
func parseReports[T any, P interface {
	*T
	report
}](single P, events []T) ([]report, error) {
	list := []report{single}
	var f validator
	if events != nil {
		if !reflect.ValueOf(single).Elem().IsZero() {
			f.add("events", "alone", "Send one event, or events and nothing beside it.")
		}
		if len(events) == 0 || len(events) > maxEvents {
			f.add("events", "out-of-range", "Must be 1 to 50 events.")
		}
		list = nil
		for i := range events {
			list = append(list, P(&events[i]))
		}
	}
	for i, r := range list[:min(len(list), maxEvents)] {
		if events != nil {
			f.prefix = "events." + strconv.Itoa(i) + "."
		}
		r.fields().check(&f)
		r.check(&f)
	}
	if len(f.fields) > 0 {
		return nil, problem.Invalid(f.fields...)
	}
	return list, nil
}

func (c *commonFields) check(f *validator) {
	f.id("searchSessionId", id.SearchSession, c.SearchSessionID, false)
	if c.EventID != "" && !isEventID(c.EventID) {
		f.add("eventId", "malformed", "Must be 8 to 64 letters, digits, hyphens and underscores.")
	}
}

func isEventID(s string) bool {
	for _, c := range s {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && c != '-' && c != '_' {
			return false
		}
	}
	return len(s) >= 8 && len(s) <= 64
}

type acceptedResponse struct {
	Accepted int `json:"accepted"`
}

// record writes the reports of one request as events, all or none, and what was viewed to its place in the list. Without
// consent nothing of them is written. When neither Postgres nor, for the time until it is back, Redis takes the events,
// the client is told to send them again: here nothing else was asked for, and an eventId makes the second time
// harmless.
func (d *Handlers) record(w http.ResponseWriter, r *http.Request, list []report) error {
	ctx, guest, err := d.guests.Begin(w, r, nil)
	if err != nil {
		return err
	}
	var answer acceptedResponse
	var seen []session.ViewedProperty
	if guest.AllowsEvents() {
		answer.Accepted = len(list)
		for _, report := range list {
			at := eventTime(report.occurredAt(), guest)
			ids := eventIDs(guest, report)
			guest.RecordOnce(ctx, ids(id.Event), at, report.payload(guest, at, ids))
			if property, tenant, source := report.viewedProperty(); property != "" {
				seen = append(seen, session.ViewedProperty{PropertyID: property, TenantID: tenant, ViewedAt: timestamp.Format(at), Source: source})
			}
		}
	}
	left := d.guests.Finish(ctx, w, guest, nil, func(pipe redis.Pipeliner) { d.sessions.EnqueueViewed(ctx, pipe, guest.Session, seen...) })
	if errors.Is(left.SaveErr, session.ErrCleared) {
		answer.Accepted = 0 // nothing is written for a session that is over
	}
	if left.EventsErr != nil {
		return problem.New(problem.UpstreamUnavailable, "Events cannot be taken at present. Please send them again.", left.EventsErr).WithRetryAfter(time.Second)
	}
	return web.WriteJSON(w, http.StatusAccepted, answer)
}

const (
	maxClockSkew       = time.Minute
	sessionStartMargin = 100 * time.Millisecond // and session.started has been dated: the session's id is made a moment before
	maxSessionAge      = 365 * 24 * time.Hour   // a session lives no longer
)

// eventTime is when something happened: what the client says, unless that is before the session or in the future. Clocks
// of telephones are wrong, and that is no reason to lose the event.
func eventTime(said string, guest *guest.Guest) time.Time {
	at, err := time.Parse(time.RFC3339Nano, said)
	if err != nil || at.Before(id.Time(guest.ID).Add(-maxClockSkew)) || at.After(guest.LastSeenAt.Add(maxClockSkew)) {
		return guest.LastSeenAt
	}
	return at.UTC().Truncate(time.Millisecond)
}

// eventIDs makes the ids of an event: new ones, or, when the client has named it, those that the same name always
// makes, so that the outbox takes it once. Nothing of the request but what the client repeats goes into them: the time in
// an id is the time it said, kept within what a session can live; without one it is the session's first moment, but later
// than that of session.started, because a session's events are sent by id. Another guest's ids cannot be met, because
// the session is in them.
func eventIDs(guest *guest.Guest, r report) func(id.Prefix) string {
	name := r.fields().EventID
	if name == "" {
		return guest.NewID
	}
	first, last := id.Time(guest.ID).Add(sessionStartMargin), id.Time(guest.ID).Add(maxSessionAge)
	at, err := time.Parse(time.RFC3339Nano, r.occurredAt())
	switch {
	case err != nil || at.Before(first):
		at = first
	case at.After(last):
		at = last
	}
	return func(p id.Prefix) string { return id.Derive(p, at, guest.ID, r.subject(), name) }
}
