package telemetry

import (
	"errors"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Handlers holds the dependencies of the telemetry routes. Click, PageView and Funnel are the
// handlers and share costs and failures. Safe for concurrent use.
//
// A handler records all reports of a request or, if any report is invalid (422), no report. The
// answer is 202 with the number of accepted reports: 0 for a guest known to refuse telemetry and
// for a cleared session. A repeated eventId counts as accepted and is stored once; a report without
// an eventId is stored with each repetition. A reported time before the session or over a minute
// ahead is replaced by the time of the request.
//
// The cost is the Redis round trip of admission; a second one of at most 100 ms, for every request
// with accepted reports and otherwise for a changed session only; and a Postgres write of at most
// 300 ms, also when the client hangs up. Without Postgres the events wait in a Redis list (500 ms
// more), unless the guest's consent is unknown. When no store takes the events, the answer is 503
// and the client sends the events again. Without Redis the events are recorded and the viewed
// properties are lost. When Postgres takes none of the events, because all are repeated, refused or
// cleared, a query adds up to 150 ms, and for a cleared session the rest of its erasure up to 1.5
// s.
type Handlers struct {
	guests   *guest.Controller
	sessions *session.Store
}

const maxEvents = 50 // of a request

// report is an event as reported by a client.
type report interface {
	// check adds the faults of the report to f.
	check(f *validator)
	// subject returns the subject of the event.
	subject() string
	// fields returns the members common to all kinds of reports.
	fields() *commonFields
	// occurredAt returns the time reported by the client, or "".
	occurredAt() string
	// payload builds the event. ids makes the ids inside the event.
	payload(g *guest.Guest, at time.Time, ids func(id.Prefix) string) event.Payload
	// viewedProperty returns the property opened by the guest and the source of the view, or "".
	viewedProperty() (property, tenant, source string)
}

// commonFields holds the members common to all kinds of reports.
type commonFields struct {
	SearchSessionID string `json:"searchSessionId"`
	EventID         string `json:"eventId"`
}

// parseReports returns the reports of a body, validated: the body itself, or the 1 to 50 members of
// "events". The error is a problem with all faults of the first 50 reports.
func parseReports[T any, P interface {
	*T
	report
}](single P, events []T) ([]report, error) {
	list := []report{single}
	var f validator
	if events != nil {
		if !reflect.ValueOf(single).Elem().IsZero() {
			f.add("events", "alone", "Send one event, or events without other members.")
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

// record writes the reports of one request as events, all or none, and adds viewed properties to
// the guest's list. The answer is 202 with the number of accepted reports: 0 without consent and
// for a cleared session. The answer is personal (private, no-store); web.Budget bounds the request
// to 2.5 s.
//
// The cost is two Redis round trips of at most 100 ms each and a Postgres write of at most 300 ms.
//
// Without Postgres the events wait in a Redis list (500 ms more), unless the guest's consent is
// unknown. When no store takes the events, the answer is 503 and the client sends them again: an
// eventId makes a repetition harmless. Without Redis the events are recorded and the viewed
// properties are lost.
func (h *Handlers) record(w http.ResponseWriter, r *http.Request, reports []report) error {
	ctx, guest, err := h.guests.Begin(w, r, nil)
	if err != nil {
		return err
	}
	var answer acceptedResponse
	var viewed []session.ViewedProperty
	if guest.AllowsEvents() {
		answer.Accepted = len(reports)
		for _, report := range reports {
			at := eventTime(report.occurredAt(), guest)
			ids := eventIDs(guest, report)
			guest.RecordOnce(ctx, ids(id.Event), at, report.payload(guest, at, ids))
			if property, tenant, source := report.viewedProperty(); property != "" {
				viewed = append(viewed, session.ViewedProperty{PropertyID: property, TenantID: tenant, ViewedAt: timestamp.Format(at), Source: source})
			}
		}
	}
	result := h.guests.Finish(ctx, w, guest, nil, func(pipe redis.Pipeliner) { h.sessions.EnqueueViewed(ctx, pipe, guest.Session, viewed...) })
	if errors.Is(result.SaveErr, session.ErrCleared) {
		answer.Accepted = 0 // nothing is written for a cleared session
	}
	if result.EventsErr != nil {
		return problem.New(problem.UpstreamUnavailable, "Events cannot be recorded at present. Please send them again.", result.EventsErr).WithRetryAfter(time.Second)
	}
	return web.WriteJSON(w, http.StatusAccepted, answer)
}

const (
	maxClockSkew = time.Minute
	// session.started is dated at most this long after the time in the session's id
	sessionStartMargin = 100 * time.Millisecond
	maxSessionAge      = 365 * 24 * time.Hour // the longest life of a session
)

// eventTime returns the reported time in UTC and whole milliseconds, or the time of the request for
// an absent or unreadable time and for a time over a minute before the session or over a minute
// ahead: the clocks of telephones are wrong, and an event must not be lost for a wrong clock.
func eventTime(reported string, guest *guest.Guest) time.Time {
	at, err := time.Parse(time.RFC3339Nano, reported)
	if err != nil || at.Before(id.Time(guest.ID).Add(-maxClockSkew)) || at.After(guest.LastSeenAt.Add(maxClockSkew)) {
		return guest.LastSeenAt
	}
	return at.UTC().Truncate(time.Millisecond)
}

// eventIDs returns the source of the ids of a report. Without an eventId the ids are new. With an
// eventId they are derived, so that the outbox stores a repeated report once.
//
// A derived id depends only on values in each repetition: session, subject, eventId and the
// reported time, limited to the life of a session. Without a reported time the id has the first
// moment of the session after session.started, because the relay sends the events of a session in
// order of id. The session is part of the derivation, so two guests never share an id.
func eventIDs(guest *guest.Guest, r report) func(id.Prefix) string {
	name := r.fields().EventID
	if name == "" {
		return guest.NewID
	}
	earliest, latest := id.Time(guest.ID).Add(sessionStartMargin), id.Time(guest.ID).Add(maxSessionAge)
	at, err := time.Parse(time.RFC3339Nano, r.occurredAt())
	switch {
	case err != nil || at.Before(earliest):
		at = earliest
	case at.After(latest):
		at = latest
	}
	return func(p id.Prefix) string { return id.Derive(p, at, guest.ID, r.subject(), name) }
}
