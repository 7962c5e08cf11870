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

// Responder does for list and map alike what concerns the guest who asked: the search session, the
// history, the telemetry, and the answer that carries them. Safe for concurrent use.
type Responder struct {
	guests   *guest.Controller
	sessions *session.Store
	flags    *flags.Source
	now      func() time.Time
}

// NewResponder makes Guests.
func NewResponder(door *guest.Controller, sessions *session.Store, flags *flags.Source, now func() time.Time) *Responder {
	return &Responder{door, sessions, flags, now}
}

// result is one search that was answered.
type result struct {
	query   upstream.SearchQuery
	hash    string
	filters event.Filters
	page    *upstream.Page // nil for a map
	entry   *cache.Entry
	state   cache.State
}

const samplingKey = "search.executed" // the name of its sampling rate among the flags

// respond writes what is to be remembered, then the kept page with the guest's search session behind it.
func (g *Responder) respond(ctx context.Context, w http.ResponseWriter, r *http.Request, guest *guest.Guest, s result) error {
	now := g.now()
	searchID, fresh := guest.ResumeSearch(s.hash, now)
	rate := g.flags.Current().SamplingRate(samplingKey)
	sampled := event.IsSampled(guest.ID, rate)
	var found int
	var place *upstream.Place
	if fresh || sampled { // most hits need neither
		found, place = view.PeekIndex(s.entry.Index)
	}
	if sampled {
		guest.Record(ctx, newSearchExecuted(guest.ID, searchID, s, found, place, web.FromContext(ctx).Elapsed()), rate)
	}
	var history *session.HistoryEntry
	record := session.SearchSession{ID: searchID}
	if fresh {
		asked, err := json.Marshal(s.query, json.Deterministic(true))
		if err != nil {
			return err
		}
		record = session.SearchSession{
			ID: searchID, GuestSessionID: guest.ID, QueryHash: s.hash, Query: asked,
			Locale: string(s.query.Locale), Currency: string(s.query.Currency), ResultCount: found,
		}
		history = &session.HistoryEntry{
			SearchSessionID: searchID, QueryHash: s.hash, Geo: s.query.Geo, Dates: s.query.Dates,
			Occupancy: s.query.Occupancy, ExecutedAt: timestamp.Format(now),
		}
	}
	var touch func(redis.Pipeliner)
	if fresh || guest.NeedsSave() { // else this guest's last search was within the minute
		touch = func(pipe redis.Pipeliner) { g.sessions.EnqueueSearch(ctx, pipe, record, fresh) }
	}
	g.guests.Finish(ctx, w, guest, history, touch)
	w.Header().Set("X-Cache", string(s.state))
	web.FromContext(ctx).AddLogField("cache", string(s.state))
	return s.entry.Write(w, r, []byte(`,"searchSessionId":"`+searchID+`"}`))
}

func newSearchExecuted(sessionID, searchID string, s result, found int, place *upstream.Place, took time.Duration) event.SearchExecuted {
	q := s.query
	e := event.SearchExecuted{
		GuestSessionID: sessionID, SearchSessionID: searchID, QueryHash: s.hash, Kind: string(q.Kind),
		Geo:        event.Geo{Mode: q.Geo.Mode},
		Dates:      event.Dates{CheckIn: q.Dates.CheckIn.String(), CheckOut: q.Dates.CheckOut.String()},
		Occupancy:  event.Occupancy{Adults: q.Occupancy.Adults, Children: q.Occupancy.Children, Rooms: q.Occupancy.Rooms},
		FilterKeys: s.filters, SortKey: q.SortKey, ResultCount: found, FromCache: s.state != cache.Miss,
		CompositionMs: took.Milliseconds(), Currency: string(q.Currency), Locale: string(q.Locale),
	}
	if place != nil { // the canonical names, never what was typed
		e.Geo.City, e.Geo.Region, e.Geo.Country = event.SanitizePlaceName(place.City), event.SanitizePlaceName(place.Region), place.Country
	}
	if s.page != nil {
		e.Page = &event.Page{Limit: s.page.Limit, Offset: s.page.Offset}
	}
	return e
}
