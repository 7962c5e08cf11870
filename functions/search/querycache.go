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

// parsedQuery is a decoded, validated and normalized body, shared by requests with the same body.
// Only the hashes may change. Safe for concurrent use.
type parsedQuery struct {
	query               upstream.SearchQuery // without locale and currency
	filters             event.Filters
	page                upstream.Page
	spotlightPropertyID string // of a map; may be empty
	parsedOn            stay.Date
	hashes              sync.Map // preference -> query hash
}

type preference struct {
	locale   locale.Tag
	currency money.Currency
}

// hash returns the query hash for a locale and currency, and computes each hash once.
func (q *parsedQuery) hash(l locale.Tag, c money.Currency) string {
	p := preference{l, c}
	if known, ok := q.hashes.Load(p); ok {
		return known.(string)
	}
	hash := queryHash(q.query, l, c)
	q.hashes.Store(p, hash)
	return hash
}

// queryCache is an LRU cache of parsed bodies, in process memory. A page that a campaign links to
// is requested thousands of times with the same bytes, and parsing them is a tenth of the cost of a
// warm hit. Safe for concurrent use.
type queryCache struct {
	entries *lru.Cache[string, *parsedQuery]
	parse   func(body []byte, now time.Time) (*parsedQuery, error)
	now     func() time.Time
}

const (
	maxCachedQueries = 2048
	maxCachedBody    = 1 << 10 // bytes; larger bodies are parsed each time
)

// newQueryCache returns an empty cache of at most 2,048 bodies of at most 1 KiB. parse validates
// dates against the time it is given.
func newQueryCache(now func() time.Time, parse func([]byte, time.Time) (*parsedQuery, error)) *queryCache {
	entries, err := lru.New[string, *parsedQuery](maxCachedQueries)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return &queryCache{entries, parse, now}
}

// get returns the parsed body, from the cache when it was parsed today (UTC): a check-in date that
// was valid yesterday may have passed. Errors come from parse and are not cached.
func (c *queryCache) get(body []byte) (*parsedQuery, error) {
	now := c.now()
	today := stay.DateOf(now.UTC())
	if q, ok := c.entries.Get(string(body)); ok && q.parsedOn == today {
		return q, nil
	}
	q, err := c.parse(body, now)
	if err != nil {
		return nil, err
	}
	q.parsedOn = today
	if len(body) <= maxCachedBody {
		c.entries.Add(string(body), q)
	}
	return q, nil
}

// decodeInto returns a callback for web.WithJSONBody that stores the parsed body in *q.
func (c *queryCache) decodeInto(q **parsedQuery) func([]byte) error {
	return func(body []byte) (err error) {
		*q, err = c.get(body)
		return err
	}
}
