package search

import (
	"context"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// List handles POST /search. Safe for concurrent use.
type List struct {
	finder    *Finder
	responder *Responder
	queries   *queryCache
}

// NewList returns the handler of POST /search with an empty cache of parsed bodies: at most 2,048
// bodies of at most 1 KiB, in memory. NewList does no I/O and cannot fail.
func NewList(finder *Finder, responder *Responder) *List {
	return &List{finder, responder, newQueryCache(finder.now, parseList)}
}

type listRequest struct {
	query
	Page *pageRequest `json:"page"`
}

type pageRequest struct {
	Limit  *int `json:"limit"`
	Offset int  `json:"offset"`
}

// toUpstream validates the page, adds faults to f, and fills in the defaults: limit 20, offset 0.
func (p *pageRequest) toUpstream(f *problem.FieldErrors) upstream.Page {
	page := upstream.Page{Limit: defaultLimit}
	if p == nil {
		return page
	}
	if p.Limit != nil {
		page.Limit = *p.Limit
	}
	page.Offset = p.Offset
	if page.Limit < 1 || page.Limit > maxLimit {
		f.Add("page.limit", "out-of-range", "Must be from 1 to 50.")
	}
	if page.Offset < 0 || page.Offset > maxOffset {
		f.Add("page.offset", "out-of-range", "Must be from 0 to 1000.")
	}
	return page
}

// parseList decodes, validates and normalizes a body of POST /search. The problem of an undecodable
// body has a single fault; the problem of a decoded body has all faults.
func parseList(body []byte, now time.Time) (*parsedQuery, error) {
	in := listRequest{query: defaultQuery()}
	if err := web.DecodeBytes(body, &in); err != nil {
		return nil, err
	}
	faults := in.check(now)
	page := in.Page.toUpstream(&faults)
	if len(faults) > 0 {
		return nil, problem.Invalid(faults...)
	}
	return &parsedQuery{query: in.normalize(upstream.List, nil, page), filters: in.Filters.telemetryKeys(), page: page}, nil
}

// Serve answers POST /search with a page of hotel cards. The answer is personal (private,
// no-store), because of the guest's search session id. web.Budget bounds the request to 2.5 s.
//
// A warm hit costs a Redis round trip, of at most 100 ms, and no call to Postgres or an upstream.
// There is a second round trip, of at most 100 ms, when the session is new or changed, runs another
// search than the last, was last saved over a minute ago, solved a challenge now, or has an event.
// There is a write to Postgres, of at most 300 ms, when the session is new, search.executed is
// sampled, language or currency changed, or the client has the score of a bot. When the rates are
// old, a single caller waits for a call of pricing. A mutex of the process guards the cache of
// parsed bodies for a moment.
//
// A load costs a call of search-aggregation, calls of pricing (800 ms) and theme-config (750 ms)
// side by side, and three or more Redis round trips. A single flight among all processes loads;
// callers without a stored page wait for the load until their deadline.
//
// Failures:
//   - Redis: every process loads by itself and stores nothing; the session is degraded and not
//     saved.
//   - Postgres: the answer is the same. Events wait in a Redis list (500 ms more), unless the
//     guest's consent is unknown; without both stores the events are lost and the loss is logged.
//   - search-aggregation: a stored page up to 10 minutes past its freshness, else 503, or 504 when
//     time ran out.
//   - pricing: cards without rates, or with stored rates marked isStale.
//   - theme-config: neutral brands.
//
// A missing part is named in "degraded". Cards of suspended tenants are removed, unless no copy of
// the suspended tenants is known.
func (l *List) Serve(w http.ResponseWriter, r *http.Request) error {
	var parsed *parsedQuery
	if err := web.WithJSONBody(r, l.queries.decodeInto(&parsed)); err != nil {
		return l.responder.guests.CountRejected(w, r, err)
	}
	prefetched := map[string]*cache.Pending{}
	ctx, guest, err := l.responder.guests.Begin(w, r, func(ctx context.Context, pipe redis.Pipeliner, request *session.Request) {
		key := l.finder.pageKey(parsed.hash(l.responder.sessions.PredictPreferences(request)), parsed.page)
		prefetched[key] = l.finder.cache.Enqueue(ctx, pipe, key)
	})
	if err != nil {
		return err
	}
	q := parsed.query
	q.Locale, q.Currency = guest.Locale, guest.Currency
	hash := parsed.hash(q.Locale, q.Currency)
	key := l.finder.pageKey(hash, parsed.page)

	done := web.FromContext(ctx).Phase("find")
	entry, state, err := l.finder.cache.GetOrLoad(ctx, key, prefetched[key], l.finder.listLoader(q, hash))
	done()
	if err != nil {
		return compose.Problem(err)
	}
	if entry, err = l.finder.prepareForResponse(entry, guest.Suspended); err != nil {
		return err
	}
	return l.responder.respond(ctx, w, r, guest, result{
		query: q, hash: hash, filters: parsed.filters, page: &parsed.page, entry: entry, state: state,
	})
}
