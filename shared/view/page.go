package view

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

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
	Rest        []byte          // further members, each with its leading comma
}

// Item is one card or pin: a JSON object without its closing brace, then its rate.
type Item struct {
	Tenant string
	Bare   []byte
	Rate   []byte    // members with their leading comma; empty when there is none
	Until  time.Time // the rate is fresh until then
}

// meta is what the index says besides the items.
type meta struct {
	Member      string          `json:"m"`
	ResultCount int             `json:"n"`
	Degraded    []Degraded      `json:"d,omitempty"`
	Place       *upstream.Place `json:"p"`
	Items       int             `json:"i"`
	Rest        int             `json:"r"` // length
}

const propertyAt = len(`{"propertyId":"`)

// Property is the item's id, read from its first member.
func (i *Item) Property() string {
	if len(i.Bare) < propertyAt+30 {
		return ""
	}
	return string(i.Bare[propertyAt : propertyAt+30])
}

// NewItem encodes a card or pin; its first member must be propertyId.
func NewItem(tenant string, v any) (Item, error) {
	b, err := jsonv2.Marshal(v, jsonv2.Deterministic(true))
	if err != nil {
		return Item{}, fmt.Errorf("view: encode item: %w", err)
	}
	return Item{Tenant: tenant, Bare: b[:len(b)-1]}, nil
}

// SetRate puts a list card's snapshot on the item.
func (i *Item) SetRate(r RateSnapshot, until time.Time) error {
	b, err := jsonv2.Marshal(r)
	if err != nil {
		return fmt.Errorf("view: encode rate: %w", err)
	}
	i.Rate, i.Until = append([]byte(`,"rateSnapshot":`), b...), until
	return nil
}

// Spotlight puts the rate of the spotlighted pin on the item.
func (i *Item) Spotlight(r RateSnapshot) {
	i.Rate = fmt.Appendf(nil, `,"cheapestNightlyMinor":%q,"currency":%q`, r.CheapestNightlyMinor, r.Currency) // digits and letters only
}

var freshMark, staleMark = []byte(`"isStale":false`), []byte(`"isStale":true`)

// MarkStale marks every rate whose time is over.
func (p *Page) MarkStale(now time.Time) {
	for n := range p.Items {
		if i := &p.Items[n]; len(i.Rate) > 0 && now.After(i.Until) {
			i.Rate = bytes.Replace(i.Rate, freshMark, staleMark, 1)
		}
	}
}

// Without drops the items of tenants for which gone says so.
func (p *Page) Without(gone func(tenant string) bool) {
	before := len(p.Items)
	p.Items = slices.DeleteFunc(p.Items, func(i Item) bool { return gone(i.Tenant) })
	p.ResultCount -= before - len(p.Items)
}

// Lacks says whether a part is missing.
func (p *Page) Lacks(part string) bool { return lacks(p.Degraded, part) }

// Mended takes a part off the list of what is missing.
func (p *Page) Mended(part string) { p.Degraded = mended(p.Degraded, part) }

func lacks(parts []Degraded, part string) bool {
	return slices.ContainsFunc(parts, func(d Degraded) bool { return d.Part == part })
}

func mended(parts []Degraded, part string) []Degraded {
	return slices.DeleteFunc(parts, func(d Degraded) bool { return d.Part == part })
}

// Owners are the tenants of the items, each once, in order of first appearance.
func (p *Page) Owners() []string {
	var owners []string
	seen := map[string]bool{}
	for _, i := range p.Items {
		if !seen[i.Tenant] {
			seen[i.Tenant] = true
			owners = append(owners, i.Tenant)
		}
	}
	return owners
}

// RatesUntil is when the first rate of the page stops being fresh; zero when it has none.
func (p *Page) RatesUntil() time.Time {
	var first time.Time
	for _, i := range p.Items {
		if len(i.Rate) > 0 && (first.IsZero() || i.Until.Before(first)) {
			first = i.Until
		}
	}
	return first
}

// Encode writes the page's body and the index that opens it again. The index refers to tenants by their
// place in Owners.
func (p *Page) Encode() (body, index []byte, err error) {
	m := meta{p.Member, p.ResultCount, p.Degraded, p.Place, len(p.Items), len(p.Rest)}
	if index, err = json.Marshal(m); err != nil {
		return nil, nil, fmt.Errorf("view: encode index: %w", err)
	}
	index = append(index, '\n')
	place := map[string]uint64{}
	for n, owner := range p.Owners() {
		place[owner] = uint64(n)
	}
	body = fmt.Appendf(nil, `{"%s":[`, p.Member)
	for n, i := range p.Items {
		if n > 0 {
			body = append(body, ',')
		}
		body = append(append(append(body, i.Bare...), i.Rate...), '}')
		index = binary.AppendUvarint(index, place[i.Tenant])
		index = binary.AppendUvarint(index, uint64(len(i.Bare)))
		index = binary.AppendUvarint(index, uint64(len(i.Rate)))
		if len(i.Rate) > 0 {
			index = binary.AppendVarint(index, i.Until.UnixMilli())
		}
	}
	body = append(body, `],"resultCount":`...)
	body = strconv.AppendInt(body, int64(p.ResultCount), 10)
	body = append(body, `,"degraded":`...)
	if body, err = appendJSON(body, p.Degraded); err != nil {
		return nil, nil, err
	}
	return append(body, p.Rest...), index, nil
}

var errIndex = errors.New("view: index does not fit its body")

// Open is the inverse of Encode. The page aliases body. A body that does not fit is an error, never a panic.
func Open(body, index []byte, owners []string) (*Page, error) {
	head, marks, ok := bytes.Cut(index, []byte{'\n'})
	var m meta
	if !ok || json.Unmarshal(head, &m) != nil || m.Rest < 0 || m.Rest > len(body) || m.Items < 0 || m.Items > len(marks) {
		return nil, errIndex
	}
	p := &Page{Member: m.Member, ResultCount: m.ResultCount, Degraded: m.Degraded, Place: m.Place, Rest: body[len(body)-m.Rest:]}
	r := reader{marks: marks, body: body, at: len(m.Member) + len(`{"":[`)}
	for range m.Items {
		owner, bare, rate := r.uvarint(), r.uvarint(), r.uvarint()
		i := Item{Bare: r.take(bare), Rate: r.take(rate)}
		r.at += len(`},`)
		if len(i.Rate) > 0 {
			i.Until = time.UnixMilli(r.varint())
		}
		if r.failed || owner >= uint64(len(owners)) {
			return nil, errIndex
		}
		i.Tenant = owners[owner]
		p.Items = append(p.Items, i)
	}
	return p, nil
}

// PeekIndex reads the result count and the place without opening the page.
func PeekIndex(index []byte) (resultCount int, place *upstream.Place) {
	head, _, _ := bytes.Cut(index, []byte{'\n'})
	var m meta
	if json.Unmarshal(head, &m) != nil {
		return 0, nil
	}
	return m.ResultCount, m.Place
}

// reader walks index and body together and remembers that something did not fit.
type reader struct {
	marks, body []byte
	at          int
	failed      bool
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.marks)
	if n <= 0 {
		r.failed = true
		return 0
	}
	r.marks = r.marks[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.marks)
	if n <= 0 {
		r.failed = true
		return 0
	}
	r.marks = r.marks[n:]
	return v
}

// take cuts the next n bytes of the body, with no room to append behind them.
func (r *reader) take(n uint64) []byte {
	if r.failed || r.at > len(r.body) || n > uint64(len(r.body)-r.at) {
		r.failed = true
		return nil
	}
	start := r.at
	r.at += int(n)
	return r.body[start:r.at:r.at]
}

// AppendMember appends ,"name":value to a page's Rest.
func AppendMember(rest []byte, name string, v any) ([]byte, error) {
	rest = append(rest, ',')
	rest = strconv.AppendQuote(rest, name)
	return appendJSON(append(rest, ':'), v)
}

func appendJSON(to []byte, v any) ([]byte, error) {
	b, err := jsonv2.Marshal(v, jsonv2.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("view: encode: %w", err)
	}
	return append(to, b...), nil
}
