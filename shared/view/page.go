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

// Page is a list or a map in a form that can be changed: built from upstream responses, or decoded
// from the cache to remove a tenant, refresh rates or mark rates as stale. A cached page without
// such a change is never decoded; the stored bytes are the response. Not safe for concurrent use.
//
// The body is a JSON object without the closing brace, so that the personal members of a guest can
// be appended: {"<Member>":[items],"resultCount":n,"degraded":[…]<Extra>
type Page struct {
	Member      string // "listings" or "pins"
	Items       []Item
	ResultCount int
	Degraded    []Degraded
	Place       *upstream.Place // searched place, by canonical names
	Extra       []byte          // further members, each with a leading comma
}

// Item is a card or pin: a JSON object without the closing brace, and the rate.
type Item struct {
	TenantID       string
	Base           []byte
	Rate           []byte    // members, each with a leading comma; empty without a rate
	RateFreshUntil time.Time // end of the rate's freshness
}

const propertyOffset = len(`{"propertyId":"`)

// PropertyID returns the property id, unchecked, from the first member of the item; "" for an item
// that is too short.
func (i *Item) PropertyID() string {
	if len(i.Base) < propertyOffset+30 {
		return ""
	}
	return string(i.Base[propertyOffset : propertyOffset+30])
}

// NewItem encodes a card or pin v, without a rate. The first member of v must be propertyId;
// NewItem does not check it. The error is that of the JSON encoder.
func NewItem(tenant string, v any) (Item, error) {
	b, err := appendJSON(nil, v)
	if err != nil {
		return Item{}, err
	}
	return Item{TenantID: tenant, Base: b[:len(b)-1]}, nil
}

// SetRate sets the rate of a list card, fresh until until, and replaces an earlier rate. The error
// is that of the JSON encoder; the item is unchanged then.
func (i *Item) SetRate(r RateSnapshot, until time.Time) error {
	rate, err := AppendMember(nil, "rateSnapshot", r)
	if err != nil {
		return err
	}
	i.Rate, i.RateFreshUntil = rate, until
	return nil
}

// SetSpotlightRate sets the rate of the spotlighted pin and replaces an earlier rate. It leaves
// RateFreshUntil unchanged, and MarkStale has no effect on this rate. It never fails; amount and
// currency must be digits and letters, as from package upstream.
func (i *Item) SetSpotlightRate(r RateSnapshot) {
	// Digits and letters only; Go and JSON quote these alike.
	i.Rate = fmt.Appendf(nil, `,"cheapestNightlyMinor":%q,"currency":%q`, r.CheapestNightlyMinor, r.Currency)
}

var freshJSON, staleJSON = []byte(`"isStale":false`), []byte(`"isStale":true`)

// MarkStale marks every rate of a list card with an end of freshness before now as stale. It copies
// a rate before changing it, so the body of DecodePage stays unchanged.
func (p *Page) MarkStale(now time.Time) {
	for n := range p.Items {
		if i := &p.Items[n]; len(i.Rate) > 0 && now.After(i.RateFreshUntil) {
			i.Rate = bytes.Replace(i.Rate, freshJSON, staleJSON, 1)
		}
	}
}

// RemoveTenants removes the items of the tenants selected by remove, in place, and reduces
// ResultCount by their number. It calls remove once per item.
func (p *Page) RemoveTenants(remove func(tenantID string) bool) {
	before := len(p.Items)
	p.Items = slices.DeleteFunc(p.Items, func(i Item) bool { return remove(i.TenantID) })
	p.ResultCount -= before - len(p.Items)
}

// IsDegraded reports whether the part is in Degraded, the list of missing parts.
func (p *Page) IsDegraded(part string) bool { return isDegraded(p.Degraded, part) }

// ClearDegraded removes the part from Degraded, the list of missing parts, in place; a part that is
// not in the list has no effect.
func (p *Page) ClearDegraded(part string) { p.Degraded = clearDegraded(p.Degraded, part) }

func isDegraded(parts []Degraded, part string) bool {
	return slices.ContainsFunc(parts, func(d Degraded) bool { return d.Part == part })
}

func clearDegraded(parts []Degraded, part string) []Degraded {
	return slices.DeleteFunc(parts, func(d Degraded) bool { return d.Part == part })
}

// TenantIDs returns the tenants of the items without duplicates, in order of first appearance; nil
// without items.
func (p *Page) TenantIDs() []string {
	var tenantIDs []string
	seen := map[string]bool{}
	for _, i := range p.Items {
		if !seen[i.TenantID] {
			seen[i.TenantID] = true
			tenantIDs = append(tenantIDs, i.TenantID)
		}
	}
	return tenantIDs
}

// RatesFreshUntil returns the earliest RateFreshUntil of the items with a rate, also if past; the
// zero time without rates.
func (p *Page) RatesFreshUntil() time.Time {
	var first time.Time
	for _, i := range p.Items {
		if len(i.Rate) > 0 && (first.IsZero() || i.RateFreshUntil.Before(first)) {
			first = i.RateFreshUntil
		}
	}
	return first
}

// AppendMember appends ,"name":value to extra, for Page.Extra, and returns the result, as append
// does. name needs no escapes in JSON. The error is that of the JSON encoder; the result is nil
// then.
func AppendMember(extra []byte, name string, v any) ([]byte, error) {
	extra = append(extra, ',')
	extra = strconv.AppendQuote(extra, name)
	return appendJSON(append(extra, ':'), v)
}

// appendJSON appends v as deterministic JSON.
func appendJSON(dst []byte, v any) ([]byte, error) {
	b, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("view: encode: %w", err)
	}
	return append(dst, b...), nil
}
