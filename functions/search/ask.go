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

// ask is a body that was read, checked and brought into its normal form. It is shared by all who ask the
// same and must not be changed.
type ask struct {
	query     upstream.SearchQuery // without locale and currency
	filters   event.Filters
	page      upstream.Page
	spotlight string // property id; of a map
	day       stay.Date
	hashes    sync.Map // of the query, by preference
}

type preference struct {
	locale   locale.Tag
	currency money.Currency
}

// hash is the query hash for a guest with that locale and currency.
func (a *ask) hash(l locale.Tag, c money.Currency) string {
	p := preference{l, c}
	if known, ok := a.hashes.Load(p); ok {
		return known.(string)
	}
	hash := hashOf(a.query, l, c)
	a.hashes.Store(p, hash)
	return hash
}

// asks remembers the bodies that were asked lately: a page that a campaign points at is asked by the same
// bytes thousands of times, and reading them is a tenth of what answering from the cache costs.
type asks struct {
	known *lru.Cache[string, *ask]
	read  func(body []byte, now time.Time) (*ask, error)
	now   func() time.Time
}

const (
	keptAsks    = 2048
	largestKept = 1 << 10 // bytes of a body
)

func newAsks(now func() time.Time, read func([]byte, time.Time) (*ask, error)) *asks {
	known, err := lru.New[string, *ask](keptAsks)
	if err != nil {
		panic(err) // unreachable: the size is a positive constant
	}
	return &asks{known, read, now}
}

// of is what the body says. Whether a date is past depends on the day, so what was read yesterday is read
// again.
func (k *asks) of(body []byte) (*ask, error) {
	now := k.now()
	today := stay.DateOf(now.UTC())
	if a, ok := k.known.Get(string(body)); ok && a.day == today {
		return a, nil
	}
	a, err := k.read(body, now)
	if err != nil {
		return nil, err
	}
	a.day = today
	if len(body) <= largestKept {
		k.known.Add(string(body), a)
	}
	return a, nil
}

// keep makes a reader for web.Body that leaves the ask in a.
func (k *asks) keep(a **ask) func([]byte) error {
	return func(body []byte) (err error) {
		*a, err = k.of(body)
		return err
	}
}
