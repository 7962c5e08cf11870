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
)

// cachedHandler is the common part of both routes: admit a request, read or load the cache entry,
// and write the entry. The first tenant of an entry is the tenant of the hotel. Safe for concurrent
// use.
type cachedHandler struct {
	guests *guest.Controller
	cache  *cache.Cache
	now    func() time.Time
}

// Marks are the bytes of an entry's Index.
const (
	markPartial = 'p' // a part is missing, or its rates were marked stale
	markPriced  = '$' // the entry has prices, which expire at RatesFreshUntil
)

func hasMark(e *cache.Entry, mark byte) bool { return bytes.IndexByte(e.Index, mark) >= 0 }

// page is the decoded body of an answer.
type page interface {
	MarkStale()
	Encode() ([]byte, error)
}

// pack encodes and compresses a page into a cache entry. tenants begins with the tenant of the
// hotel.
func pack(p page, tenants []string, isPartial, isPriced bool) (cache.Entry, error) {
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
	entry, err := cache.NewEntry(http.StatusOK, body, tenants, marks)
	if err != nil {
		return cache.Entry{}, fmt.Errorf("detail: pack: %w", err)
	}
	return entry, nil
}

// notFoundEntry returns the negative entry of an unknown property, kept for 30 s
// (cache.NegativeTTL).
func notFoundEntry(propertyID string) (cache.Loaded, error) {
	entry, err := cache.NewEntry(http.StatusNotFound, nil, nil, nil)
	return cache.Loaded{Entry: entry, Tags: []string{cache.PropertyTag(propertyID)}}, err
}

// lookup admits the request and returns the entry under key, read in the round trip of
// BeginAnonymous or made by the loader. Errors are problems: a refusal by rate limits or bot
// detection; 404 for an unknown hotel and for a hotel of a suspended tenant; 503 or 504 when the
// loader failed and no entry is stored.
func (s *cachedHandler) lookup(w http.ResponseWriter, r *http.Request, key string, loader cache.Loader) (*cache.Entry, cache.State, *tenants.SuspendedSet, error) {
	var prefetched *cache.Pending
	ctx, suspended, err := s.guests.BeginAnonymous(w, r, func(ctx context.Context, pipe redis.Pipeliner) {
		prefetched = s.cache.Enqueue(ctx, pipe, key)
	})
	if err != nil {
		return nil, cache.Bypass, nil, err
	}
	call := web.FromContext(ctx)
	defer call.Phase("find")()
	entry, state, err := s.cache.GetOrLoad(ctx, key, prefetched, loader)
	if err != nil {
		return nil, state, suspended, compose.Problem(err)
	}
	call.AddLogField("cache", string(state))
	if entry.Status == http.StatusNotFound {
		return nil, state, suspended, hotelNotFound()
	}
	for tenant := range entry.TenantIDs() {
		if suspended.Has(tenant) {
			return nil, state, suspended, hotelNotFound()
		}
		break // the other tenants own similar hotels, which prepareForResponse removes
	}
	return entry, state, suspended, nil
}

func hotelNotFound() error {
	return problem.New(problem.ResourceNotFound, "There is no such hotel.", nil)
}

// ratesExpired reports whether an entry has prices that expired.
func (s *cachedHandler) ratesExpired(e *cache.Entry) bool {
	return hasMark(e, markPriced) && s.now().After(e.RatesFreshUntil)
}

// respond writes an entry. The edge may store an entry that is stale, partial or has expired prices
// for 15 s only.
func (s *cachedHandler) respond(w http.ResponseWriter, r *http.Request, in web.SharedQuery, e *cache.Entry, state cache.State) error {
	if hasMark(e, markPartial) {
		web.FromContext(r.Context()).AddLogField("degraded", true)
	}
	w.Header().Set("X-Cache", string(state))
	web.MarkShared(w, in.PreferencesInURL, state == cache.Stale || hasMark(e, markPartial))
	return e.WriteShared(w, r)
}

// propertyFromPath returns the property id of the path, or a validation problem.
func propertyFromPath(r *http.Request) (string, error) {
	property := r.PathValue("propertyId")
	if !id.Valid(id.Property, property) {
		return "", problem.Invalid(problem.FieldError{Field: "propertyId", Code: "malformed", Detail: "Must be a property id."})
	}
	return property, nil
}
