package search

import (
	"context"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/flags"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/view"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// Responder ends a request of List and Map: it continues or begins the search session, records
// history and telemetry, and writes the answer. Safe for concurrent use.
type Responder struct {
	guests   *guest.Controller
	sessions *session.Store
	flags    *flags.Source
	now      func() time.Time
}

// NewResponder returns a Responder. now is the clock of search sessions and history. NewResponder
// does no I/O and cannot fail.
func NewResponder(guests *guest.Controller, sessions *session.Store, flags *flags.Source, now func() time.Time) *Responder {
	return &Responder{guests, sessions, flags, now}
}

// result is an answered search before it is written.
type result struct {
	query   upstream.SearchQuery
	hash    string
	filters event.Filters
	page    *upstream.Page // nil for a map
	entry   *cache.Entry
	state   cache.State
}

const samplingKey = "search.executed" // key of the sampling rate in the flags

// respond calls guest.Finish and then writes the cached page with the search session id appended.
//
// Finish costs a Redis round trip of at most 100 ms, or none for a session that was saved within
// the last minute and runs a known search; events cost a Postgres write. A failure of either store
// is logged and does not change the answer. Errors come from encoding the query and writing the
// answer.
func (p *Responder) respond(ctx context.Context, w http.ResponseWriter, r *http.Request, guest *guest.Guest, s result) error {
	now := p.now()
	searchID, isNew := guest.ResumeSearch(s.hash, now)
	rate := p.flags.Current().SamplingRate(samplingKey)
	sampled := event.IsSampled(guest.ID, rate)
	var resultCount int
	var place *upstream.Place
	if isNew || sampled { // most hits are neither and skip decoding the index
		resultCount, place = view.PeekIndex(s.entry.Index)
	}
	if sampled {
		guest.Record(ctx, newSearchExecuted(guest.ID, searchID, s, resultCount, place, web.FromContext(ctx).Elapsed()), rate)
	}
	var history *session.HistoryEntry
	record := session.SearchSession{ID: searchID}
	if isNew {
		query, err := json.Marshal(s.query, json.Deterministic(true))
		if err != nil {
			return err
		}
		record = session.SearchSession{
			ID: searchID, GuestSessionID: guest.ID, QueryHash: s.hash, Query: query,
			Locale: string(s.query.Locale), Currency: string(s.query.Currency), ResultCount: resultCount,
		}
		history = &session.HistoryEntry{
			SearchSessionID: searchID, QueryHash: s.hash, Geo: s.query.Geo, Dates: s.query.Dates,
			Occupancy: s.query.Occupancy, ExecutedAt: timestamp.Format(now),
		}
	}
	var saveSearch func(redis.Pipeliner)
	if isNew || guest.NeedsSave() { // otherwise the session was saved within the last minute
		saveSearch = func(pipe redis.Pipeliner) { p.sessions.EnqueueSearch(ctx, pipe, record, isNew) }
	}
	p.guests.Finish(ctx, w, guest, history, saveSearch)
	w.Header().Set("X-Cache", string(s.state))
	web.FromContext(ctx).AddLogField("cache", string(s.state))
	return s.entry.Write(w, r, []byte(`,"searchSessionId":"`+searchID+`"}`))
}

// newSearchExecuted builds the telemetry event of a search, without any text that the guest typed.
func newSearchExecuted(sessionID, searchID string, s result, resultCount int, place *upstream.Place, elapsed time.Duration) event.SearchExecuted {
	q := s.query
	e := event.SearchExecuted{
		GuestSessionID: sessionID, SearchSessionID: searchID, QueryHash: s.hash, Kind: string(q.Kind),
		Geo:        event.Geo{Mode: q.Geo.Mode},
		Dates:      event.Dates{CheckIn: q.Dates.CheckIn.String(), CheckOut: q.Dates.CheckOut.String()},
		Occupancy:  event.Occupancy{Adults: q.Occupancy.Adults, Children: q.Occupancy.Children, Rooms: q.Occupancy.Rooms},
		FilterKeys: s.filters, SortKey: q.SortKey, ResultCount: resultCount, FromCache: s.state != cache.Miss,
		CompositionMs: elapsed.Milliseconds(), Currency: string(q.Currency), Locale: string(q.Locale),
	}
	if place != nil { // canonical names from search-aggregation, never the guest's text
		e.Geo.City, e.Geo.Region, e.Geo.Country = event.SanitizePlaceName(place.City), event.SanitizePlaceName(place.Region), place.Country
	}
	if s.page != nil {
		e.Page = &event.Page{Limit: s.page.Limit, Offset: s.page.Offset}
	}
	return e
}
