package detail

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/cache"
	"melmastoon.ghasi.io/bff-consumer/shared/compose"
	"melmastoon.ghasi.io/bff-consumer/shared/guest"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/tenants"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
	"melmastoon.ghasi.io/bff-consumer/shared/wiring"
)

// cachedHandler is what both routes do alike: take an answer from the cache, or make it, and hand it to whoever asks. The first
// owner of an answer is the tenant of its hotel.
type cachedHandler struct {
	guests *guest.Controller
	cache  *cache.Cache
	now    func() time.Time
}

func newCachedHandler(p *wiring.Deps) cachedHandler { return cachedHandler{p.Guests, p.Cache, p.Now} }

// Marks are an answer's Index: a letter for each that holds.
const (
	markPartial = 'p' // something is missing from it, or old
	markPriced  = '$' // it shows prices, whose time is over at RatesUntil
)

func hasMark(e *cache.Entry, mark byte) bool { return bytes.IndexByte(e.Index, mark) >= 0 }

// page is the body of an answer, open.
type page interface {
	MarkStale()
	Encode() ([]byte, error)
}

// pack makes a cache entry of a page.
func pack(p page, owners []string, isPartial, isPriced bool) (cache.Entry, error) {
	var marks []byte
	if isPartial {
		marks = append(marks, markPartial)
	}
	if isPriced {
		marks = append(marks, markPriced)
	}
	body, err := p.Encode()
	if err != nil {
		return cache.Entry{}, err
	}
	entry, err := cache.NewEntry(http.StatusOK, body, owners, marks)
	if err != nil {
		return cache.Entry{}, fmt.Errorf("detail: pack: %w", err)
	}
	return entry, nil
}

// notFoundEntry is the negative answer about a property that does not exist.
func notFoundEntry(propertyID string) (cache.Loaded, error) {
	entry, err := cache.NewEntry(http.StatusNotFound, nil, nil, nil)
	return cache.Loaded{Entry: entry, Tags: []string{cache.PropertyTag(propertyID)}}, err
}

// lookup is the answer under key for whoever is let in, read with the way in; without Redis the answer is made anew. A hotel
// whose tenant is suspended is not found, like one that does not exist.
func (s *cachedHandler) lookup(w http.ResponseWriter, r *http.Request, key string, recipe cache.Loader) (*cache.Entry, cache.State, *tenants.SuspendedSet, error) {
	var prefetched *cache.Pending
	ctx, suspended, err := s.guests.BeginAnonymous(w, r, func(ctx context.Context, pipe redis.Pipeliner) {
		prefetched = s.cache.Enqueue(ctx, pipe, key)
	})
	if err != nil {
		return nil, cache.Bypass, nil, err
	}
	call := web.FromContext(ctx)
	defer call.Phase("find")()
	entry, state, err := s.cache.GetOrLoad(ctx, key, prefetched, recipe)
	if err != nil {
		return nil, state, suspended, compose.Problem(err)
	}
	call.AddLogField("cache", string(state))
	if entry.Status == http.StatusNotFound {
		return nil, state, suspended, hotelNotFound()
	}
	for owner := range entry.TenantIDs() {
		if suspended.Has(owner) {
			return nil, state, suspended, hotelNotFound()
		}
		break // the others are only mentioned
	}
	return entry, state, suspended, nil
}

func hotelNotFound() error {
	return problem.New(problem.ResourceNotFound, "There is no such hotel.", nil)
}

// ratesExpired says that an answer shows prices whose time is over.
func (s *cachedHandler) ratesExpired(e *cache.Entry) bool {
	return hasMark(e, markPriced) && s.now().After(e.RatesFreshUntil)
}

// respond hands out an entry. One that is stale, partial or has old prices is not for the edge to keep.
func (s *cachedHandler) respond(w http.ResponseWriter, r *http.Request, in web.SharedQuery, e *cache.Entry, state cache.State) error {
	if hasMark(e, markPartial) {
		web.FromContext(r.Context()).AddLogField("degraded", true)
	}
	w.Header().Set("X-Cache", string(state))
	web.MarkShared(w, in.PreferencesInURL, state == cache.Stale || hasMark(e, markPartial))
	return e.WriteShared(w, r)
}

// propertyFromPath is the property the path names.
func propertyFromPath(r *http.Request) (string, error) {
	property := r.PathValue("propertyId")
	if !id.Valid(id.Property, property) {
		return "", problem.Invalid(problem.FieldError{Field: "propertyId", Code: "malformed", Detail: "Must be a property id."})
	}
	return property, nil
}
