package view

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

// Page is a list or a map while it is changed: composed from upstream answers, or opened again from
// the cache to drop a tenant, renew rates or mark them stale. A page that needs none of that is
// never opened: its bytes go out as they were stored.
//
// Its body is one JSON object without the closing brace, so that what belongs to one guest alone can be
// appended: {"<Member>":[items],"resultCount":n,"degraded":[…]<Rest>
type Page struct {
	Member      string // "listings" or "pins"
	Items       []Item
	ResultCount int
	Degraded    []Degraded
	Place       *upstream.Place // where the search looked, by its canonical names
	Extra       []byte          // further members, each with its leading comma
}

// Item is one card or pin: a JSON object without its closing brace, then its rate.
type Item struct {
	TenantID       string
	Base           []byte
	Rate           []byte    // members with their leading comma; empty when there is none
	RateFreshUntil time.Time // the rate is fresh until then
}

const propertyOffset = len(`{"propertyId":"`)

// PropertyID is the item's id, read from its first member.
func (i *Item) PropertyID() string {
	if len(i.Base) < propertyOffset+30 {
		return ""
	}
	return string(i.Base[propertyOffset : propertyOffset+30])
}

// NewItem encodes a card or pin; its first member must be propertyId.
func NewItem(tenant string, v any) (Item, error) {
	b, err := appendJSON(nil, v)
	if err != nil {
		return Item{}, err
	}
	return Item{TenantID: tenant, Base: b[:len(b)-1]}, nil
}

// SetRate puts a list card's snapshot on the item.
func (i *Item) SetRate(r RateSnapshot, until time.Time) error {
	rate, err := AppendMember(nil, "rateSnapshot", r)
	if err != nil {
		return err
	}
	i.Rate, i.RateFreshUntil = rate, until
	return nil
}

// Spotlight puts the rate of the spotlighted pin on the item.
func (i *Item) Spotlight(r RateSnapshot) {
	// Digits and letters only, for which Go's quotes are JSON's.
	i.Rate = fmt.Appendf(nil, `,"cheapestNightlyMinor":%q,"currency":%q`, r.CheapestNightlyMinor, r.Currency)
}

var freshJSON, staleJSON = []byte(`"isStale":false`), []byte(`"isStale":true`)

// MarkStale marks every rate whose time is over.
func (p *Page) MarkStale(now time.Time) {
	for n := range p.Items {
		if i := &p.Items[n]; len(i.Rate) > 0 && now.After(i.RateFreshUntil) {
			i.Rate = bytes.Replace(i.Rate, freshJSON, staleJSON, 1)
		}
	}
}

// RemoveTenants drops the items of tenants for which gone says so.
func (p *Page) RemoveTenants(gone func(tenant string) bool) {
	before := len(p.Items)
	p.Items = slices.DeleteFunc(p.Items, func(i Item) bool { return gone(i.TenantID) })
	p.ResultCount -= before - len(p.Items)
}

// IsDegraded says whether a part is missing.
func (p *Page) IsDegraded(part string) bool { return isDegraded(p.Degraded, part) }

// ClearDegraded takes a part off the list of what is missing.
func (p *Page) ClearDegraded(part string) { p.Degraded = clearDegraded(p.Degraded, part) }

func isDegraded(parts []Degraded, part string) bool {
	return slices.ContainsFunc(parts, func(d Degraded) bool { return d.Part == part })
}

func clearDegraded(parts []Degraded, part string) []Degraded {
	return slices.DeleteFunc(parts, func(d Degraded) bool { return d.Part == part })
}

// TenantIDs are the tenants of the items, each once, in order of first appearance.
func (p *Page) TenantIDs() []string {
	var owners []string
	seen := map[string]bool{}
	for _, i := range p.Items {
		if !seen[i.TenantID] {
			seen[i.TenantID] = true
			owners = append(owners, i.TenantID)
		}
	}
	return owners
}

// RatesFreshUntil is when the first rate of the page stops being fresh; zero when it has none.
func (p *Page) RatesFreshUntil() time.Time {
	var first time.Time
	for _, i := range p.Items {
		if len(i.Rate) > 0 && (first.IsZero() || i.RateFreshUntil.Before(first)) {
			first = i.RateFreshUntil
		}
	}
	return first
}

// AppendMember appends ,"name":value to a page's Rest.
func AppendMember(rest []byte, name string, v any) ([]byte, error) {
	rest = append(rest, ',')
	rest = strconv.AppendQuote(rest, name)
	return appendJSON(append(rest, ':'), v)
}

func appendJSON(to []byte, v any) ([]byte, error) {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("view: encode: %w", err)
	}
	return append(to, b...), nil
}
