package search

import (
	"net/http"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// List answers POST /search.
type List struct {
	finder    *Finder
	responder *Responder
	queries   *queryCache
}

// NewList makes the handler.
func NewList(finder *Finder, guests *Responder) *List {
	return &List{finder, guests, newQueryCache(finder.now, parseList)}
}

type listRequest struct {
	query
	Page *pageRequest `json:"page"`
}

type pageRequest struct {
	Limit  *int `json:"limit"`
	Offset int  `json:"offset"`
}

// toUpstream checks the page and fills in its defaults.
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

// Serve answers one page of a list of hotels.
func (l *List) Serve(w http.ResponseWriter, r *http.Request) error {
	var a *parsedQuery
	if err := web.WithJSONBody(r, l.queries.decodeInto(&a)); err != nil {
		return err
	}
	ctx, guest, err := l.responder.guests.Begin(w, r, func(tag locale.Tag, c money.Currency) []string {
		return []string{l.finder.pageKey(a.hash(tag, c), a.page)}
	})
	if err != nil {
		return err
	}
	q := a.query
	q.Locale, q.Currency = guest.Locale, guest.Currency
	hash := a.hash(q.Locale, q.Currency)
	key := l.finder.pageKey(hash, a.page)

	done := web.FromContext(ctx).Phase("find")
	entry, state, err := l.finder.cache.GetOrLoad(ctx, key, guest.Prefetched(key), l.finder.listLoader(q, hash))
	done()
	if err != nil {
		return compose.Problem(err)
	}
	if entry, err = l.finder.prepareForResponse(entry, guest.Suspended); err != nil {
		return err
	}
	return l.responder.respond(ctx, w, r, guest, result{
		query: q, hash: hash, filters: a.filters, page: &a.page, entry: entry, state: state,
	})
}
