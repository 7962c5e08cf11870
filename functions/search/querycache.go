package search

import (
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/locale"
	"melmastoon.ghasi.io/bff-consumer/shared/money"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

// parsedQuery is a body that was read, checked and brought into its normal form. It is shared by all who ask the
// same and must not be changed.
type parsedQuery struct {
	query               upstream.SearchQuery // without locale and currency
	filters             event.Filters
	page                upstream.Page
	spotlightPropertyID string // property id; of a map
	parsedOn            stay.Date
	hashes              sync.Map // of the query, by preference
}

type preference struct {
	locale   locale.Tag
	currency money.Currency
}

// hash is the query hash for a guest with that locale and currency.
func (a *parsedQuery) hash(l locale.Tag, c money.Currency) string {
	p := preference{l, c}
	if known, ok := a.hashes.Load(p); ok {
		return known.(string)
	}
	hash := queryHash(a.query, l, c)
	a.hashes.Store(p, hash)
	return hash
}

// queryCache remembers the bodies that were asked lately: a page that a campaign points at is asked by the same
// bytes thousands of times, and reading them is a tenth of what answering from the cache costs.
type queryCache struct {
	entries *lru.Cache[string, *parsedQuery]
	parse   func(body []byte, now time.Time) (*parsedQuery, error)
	now     func() time.Time
}

const (
	maxCachedQueries = 2048
	maxCachedBody    = 1 << 10 // bytes of a body
)

func newQueryCache(now func() time.Time, read func([]byte, time.Time) (*parsedQuery, error)) *queryCache {
	known, err := lru.New[string, *parsedQuery](maxCachedQueries)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return &queryCache{known, read, now}
}

// get is what the body says. Whether a date is past depends on the day, so what was read yesterday is read
// again.
func (k *queryCache) get(body []byte) (*parsedQuery, error) {
	now := k.now()
	today := stay.DateOf(now.UTC())
	if a, ok := k.entries.Get(string(body)); ok && a.parsedOn == today {
		return a, nil
	}
	a, err := k.parse(body, now)
	if err != nil {
		return nil, err
	}
	a.parsedOn = today
	if len(body) <= maxCachedBody {
		k.entries.Add(string(body), a)
	}
	return a, nil
}

// decodeInto makes a reader for web.Body that leaves the ask in a.
func (k *queryCache) decodeInto(a **parsedQuery) func([]byte) error {
	return func(body []byte) (err error) {
		*a, err = k.get(body)
		return err
	}
}
