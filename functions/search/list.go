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
	finder *Finder
	guests *Guests
	asks   *asks
}

// NewList makes the handler.
func NewList(finder *Finder, guests *Guests) *List {
	return &List{finder, guests, newAsks(finder.now, readList)}
}

type listRequest struct {
	query
	Page *pageRequest `json:"page"`
}

type pageRequest struct {
	Limit  *int `json:"limit"`
	Offset int  `json:"offset"`
}

// page checks the page and fills in its defaults.
func (p *pageRequest) page(f *problem.Faults) upstream.Page {
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

func readList(body []byte, now time.Time) (*ask, error) {
	in := listRequest{query: unsaid()}
	if err := web.Parse(body, &in); err != nil {
		return nil, err
	}
	faults := in.check(now)
	page := in.Page.page(&faults)
	if len(faults) > 0 {
		return nil, problem.Invalid(faults...)
	}
	return &ask{query: in.normal(upstream.List, nil, page), filters: in.Filters.used(), page: page}, nil
}

// Serve answers one page of a list of hotels.
func (l *List) Serve(w http.ResponseWriter, r *http.Request) error {
	var a *ask
	if err := web.Body(r, l.asks.keep(&a)); err != nil {
		return err
	}
	ctx, guest, err := l.guests.door.Admit(w, r, func(tag locale.Tag, c money.Currency) []string {
		return []string{l.finder.pageKey(a.hash(tag, c), a.page)}
	})
	if err != nil {
		return err
	}
	q := a.query
	q.Locale, q.Currency = guest.Locale, guest.Currency
	hash := a.hash(q.Locale, q.Currency)
	key := l.finder.pageKey(hash, a.page)

	done := web.From(ctx).Phase("find")
	entry, state, err := l.finder.cache.Do(ctx, key, guest.Seen(key), l.finder.listOf(q, hash))
	done()
	if err != nil {
		return compose.Problem(err)
	}
	if entry, err = l.finder.shown(entry, guest.Suspended); err != nil {
		return err
	}
	return l.guests.answer(ctx, w, r, guest, search{
		query: q, hash: hash, filters: a.filters, page: &a.page, entry: entry, state: state,
	})
}
