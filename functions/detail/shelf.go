package detail

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/admission"
	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/setup"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// shelf is what both routes do alike: take an answer from the cache, or make it, and hand it to whoever asks. The first
// owner of an answer is the tenant of its hotel.
type shelf struct {
	door  *admission.Door
	cache *cache.Cache
	now   func() time.Time
}

func newShelf(p *setup.Parts) shelf { return shelf{p.Door, p.Cache, p.Now} }

// Marks are an answer's Index: a letter for each that holds.
const (
	partial = 'p' // something is missing from it, or old
	priced  = '$' // it shows prices, whose time is over at RatesUntil
)

func marked(e *cache.Entry, mark byte) bool { return bytes.IndexByte(e.Index, mark) >= 0 }

// page is the body of an answer, open.
type page interface {
	MarkStale()
	Encode() ([]byte, error)
}

// pack makes a cache entry of a page.
func pack(p page, owners []string, isPartial, isPriced bool) (cache.Entry, error) {
	var marks []byte
	if isPartial {
		marks = append(marks, partial)
	}
	if isPriced {
		marks = append(marks, priced)
	}
	body, err := p.Encode()
	if err != nil {
		return cache.Entry{}, err
	}
	entry, err := cache.Pack(http.StatusOK, body, owners, marks)
	if err != nil {
		return cache.Entry{}, fmt.Errorf("detail: pack: %w", err)
	}
	return entry, nil
}

// nothing is the negative answer about a property that does not exist.
func nothing(propertyID string) (cache.Filled, error) {
	entry, err := cache.Pack(http.StatusNotFound, nil, nil, nil)
	return cache.Filled{Entry: entry, Tags: []string{cache.Property(propertyID)}}, err
}

// find is the answer under key for whoever is let in, read with the way in; without Redis the answer is made anew. A hotel
// whose tenant is suspended is not found, like one that does not exist.
func (s *shelf) find(w http.ResponseWriter, r *http.Request, key string, recipe cache.Recipe) (*cache.Entry, cache.State, *tenants.Suspended, error) {
	ctx, look, err := s.door.Look(w, r, key)
	if err != nil {
		return nil, cache.Bypass, nil, err
	}
	call, suspended := web.From(ctx), look.Suspended
	defer call.Phase("find")()
	entry, state, err := s.cache.Do(ctx, key, look.Seen, recipe)
	if err != nil {
		return nil, state, suspended, compose.Problem(err)
	}
	call.Note("cache", string(state))
	if entry.Status == http.StatusNotFound {
		return nil, state, suspended, noHotel()
	}
	for owner := range entry.Owners() {
		if suspended.Has(owner) {
			return nil, state, suspended, noHotel()
		}
		break // the others are only mentioned
	}
	return entry, state, suspended, nil
}

func noHotel() error { return problem.New(problem.ResourceNotFound, "There is no such hotel.", nil) }

// overdue says that an answer shows prices whose time is over.
func (s *shelf) overdue(e *cache.Entry) bool {
	return marked(e, priced) && s.now().After(e.RatesUntil)
}

// answer hands out an entry. One that is stale, partial or has old prices is not for the edge to keep.
func (s *shelf) answer(w http.ResponseWriter, r *http.Request, in web.SharedQuery, e *cache.Entry, state cache.State) error {
	if marked(e, partial) {
		web.From(r.Context()).Note("degraded", true)
	}
	w.Header().Set("X-Cache", string(state))
	web.Shared(w, in.InURL, state == cache.Stale || marked(e, partial))
	return e.WriteShared(w, r)
}

// propertyIn is the property the path names.
func propertyIn(r *http.Request) (string, error) {
	property := r.PathValue("propertyId")
	if !id.Valid(id.Property, property) {
		return "", problem.Invalid(problem.Field{Field: "propertyId", Code: "malformed", Detail: "Must be a property id."})
	}
	return property, nil
}
