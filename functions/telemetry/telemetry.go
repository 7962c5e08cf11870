package telemetry

import (
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/admission"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/instant"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/ratelimit"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/setup"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Desk is where clients hand in reports. Its methods are the handlers. Safe for concurrent use.
type Desk struct {
	door     *admission.Door
	sessions *session.Room
}

// NewDesk makes a Desk.
func NewDesk(p *setup.Parts) *Desk { return &Desk{p.Door.For(ratelimit.Telemetry), p.Sessions} }

const maxEvents = 50 // of one request

// report is one event as a client tells it.
type report interface {
	// check says what is wrong with it.
	check(f *faults)
	// subject is that of the event it becomes.
	subject() string
	// about is what all reports may have.
	about() *common
	// when is the time the client says; "" when it says none.
	when() string
	// tell makes the event. ids makes the ids that belong to it.
	tell(g *admission.Guest, at time.Time, ids func(id.Prefix) string) event.Payload
	// viewed is the property whose page was opened and how the guest came to it; "" when none was.
	viewed() (property, tenant, source string)
}

// common is what every report may have.
type common struct {
	SearchSessionID string `json:"searchSessionId"`
	EventID         string `json:"eventId"`
}

// reports are those of a body: the one it is, or those in its events.
func reports[T any, P interface {
	*T
	report
}](single P, events []T) ([]report, error) {
	list := []report{single}
	var f faults
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
		r.about().check(&f)
		r.check(&f)
	}
	if len(f.list) > 0 {
		return nil, problem.Invalid(f.list...)
	}
	return list, nil
}

func (c *common) check(f *faults) {
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

type accepted struct {
	Accepted int `json:"accepted"`
}

// take writes the reports of one request as events, all or none, and what was viewed to its place in the list. Without
// consent nothing of them is written. When neither Postgres nor, for the time until it is back, Redis takes the events,
// the client is told to send them again: here nothing else was asked for, and an eventId makes the second time
// harmless.
func (d *Desk) take(w http.ResponseWriter, r *http.Request, list []report) error {
	ctx, guest, err := d.door.Admit(w, r, nil)
	if err != nil {
		return err
	}
	var answer accepted
	var seen []session.Viewed
	if guest.Emits() {
		answer.Accepted = len(list)
		for _, report := range list {
			at := happened(report.when(), guest)
			ids := idsOf(guest, report)
			guest.RecordOnce(ctx, ids(id.Event), at, report.tell(guest, at, ids))
			if property, tenant, source := report.viewed(); property != "" {
				seen = append(seen, session.Viewed{PropertyID: property, TenantID: tenant, ViewedAt: instant.Text(at), Source: source})
			}
		}
	}
	left := d.door.Leave(ctx, w, guest, nil, func(pipe redis.Pipeliner) { d.sessions.PushViewed(ctx, pipe, guest.Session, seen...) })
	if errors.Is(left.Unsaved, session.ErrCleared) {
		answer.Accepted = 0 // nothing is written for a session that is over
	}
	if left.Untold != nil {
		return problem.New(problem.UpstreamUnavailable, "Events cannot be taken at present. Please send them again.", left.Untold).After(time.Second)
	}
	return web.WriteJSON(w, http.StatusAccepted, answer)
}

const (
	clockDrift = time.Minute
	afterStart = 100 * time.Millisecond // and session.started has been dated: the session's id is made a moment before
	longest    = 365 * 24 * time.Hour   // a session lives no longer
)

// happened is when something happened: what the client says, unless that is before the session or in the future. Clocks
// of telephones are wrong, and that is no reason to lose the event.
func happened(said string, guest *admission.Guest) time.Time {
	at, err := time.Parse(time.RFC3339Nano, said)
	if err != nil || at.Before(id.Time(guest.ID).Add(-clockDrift)) || at.After(guest.LastSeenAt.Add(clockDrift)) {
		return guest.LastSeenAt
	}
	return at.UTC().Truncate(time.Millisecond)
}

// idsOf makes the ids of an event: new ones, or, when the client has named it, those that the same name always
// makes, so that the outbox takes it once. Nothing of the request but what the client repeats goes into them: the time in
// an id is the time it said, kept within what a session can live; without one it is the session's first moment, but later
// than that of session.started, because a session's events are sent by id. Another guest's ids cannot be met, because
// the session is in them.
func idsOf(guest *admission.Guest, r report) func(id.Prefix) string {
	name := r.about().EventID
	if name == "" {
		return guest.NewID
	}
	first, last := id.Time(guest.ID).Add(afterStart), id.Time(guest.ID).Add(longest)
	at, err := time.Parse(time.RFC3339Nano, r.when())
	switch {
	case err != nil || at.Before(first):
		at = first
	case at.After(last):
		at = last
	}
	return func(p id.Prefix) string { return id.Derive(p, at, guest.ID, r.subject(), name) }
}
