package view

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"melmastoon.ghasi.io/bff-consumer/shared/upstream"
)

// indexHeader is the first line of an index, as JSON. The items follow as varints.
type indexHeader struct {
	Member      string          `json:"m"`
	ResultCount int             `json:"n"`
	Degraded    []Degraded      `json:"d,omitempty"`
	Place       *upstream.Place `json:"p"`
	Items       int             `json:"i"`
	Extra       int             `json:"r"` // length
}

// Encode returns the body of the page, and the index for DecodePage, both in new memory. The index
// refers to tenants by position in TenantIDs. Encode does no I/O and copies Base, Rate and Extra
// unchecked. The error is that of the JSON encoder, for Place or Degraded; body and index are nil
// then.
func (p *Page) Encode() (body, index []byte, err error) {
	m := indexHeader{p.Member, p.ResultCount, p.Degraded, p.Place, len(p.Items), len(p.Extra)}
	if index, err = json.Marshal(m); err != nil {
		return nil, nil, fmt.Errorf("view: encode index: %w", err)
	}
	index = append(index, '\n')
	position := map[string]uint64{}
	for n, tenantID := range p.TenantIDs() {
		position[tenantID] = uint64(n)
	}
	body = fmt.Appendf(nil, `{"%s":[`, p.Member)
	for n, i := range p.Items {
		if n > 0 {
			body = append(body, ',')
		}
		body = append(append(append(body, i.Base...), i.Rate...), '}')
		index = binary.AppendUvarint(index, position[i.TenantID])
		index = binary.AppendUvarint(index, uint64(len(i.Base)))
		index = binary.AppendUvarint(index, uint64(len(i.Rate)))
		if len(i.Rate) > 0 {
			index = binary.AppendVarint(index, i.RateFreshUntil.UnixMilli())
		}
	}
	body = append(body, `],"resultCount":`...)
	body = strconv.AppendInt(body, int64(p.ResultCount), 10)
	body = append(body, `,"degraded":`...)
	if body, err = appendJSON(body, p.Degraded); err != nil {
		return nil, nil, err
	}
	return append(body, p.Extra...), index, nil
}

var errIndex = errors.New("view: index does not match the body")

// DecodePage is the inverse of Encode; tenantIDs are those of the encoded page. The page refers to
// body, so do not change body. A malformed index, or an index that does not fit the length of body
// or the number of tenantIDs, gives nil and an error, never a panic; DecodePage does not compare
// the content. It copies and decodes no items.
func DecodePage(body, index []byte, tenantIDs []string) (*Page, error) {
	header, items, ok := bytes.Cut(index, []byte{'\n'})
	var m indexHeader
	if !ok || json.Unmarshal(header, &m) != nil || m.Extra < 0 || m.Extra > len(body) || m.Items < 0 || m.Items > len(items) {
		return nil, errIndex
	}
	p := &Page{Member: m.Member, ResultCount: m.ResultCount, Degraded: m.Degraded, Place: m.Place, Extra: body[len(body)-m.Extra:]}
	r := indexReader{index: items, body: body, offset: len(m.Member) + len(`{"":[`)}
	for range m.Items {
		tenant, base, rate := r.uvarint(), r.uvarint(), r.uvarint()
		i := Item{Base: r.take(base), Rate: r.take(rate)}
		r.offset += len(`},`)
		if len(i.Rate) > 0 {
			i.RateFreshUntil = time.UnixMilli(r.varint())
		}
		if r.failed || tenant >= uint64(len(tenantIDs)) {
			return nil, errIndex
		}
		i.TenantID = tenantIDs[tenant]
		p.Items = append(p.Items, i)
	}
	return p, nil
}

// PeekIndex returns the result count and the place from the first line of an index, without
// decoding the page; 0 and nil if the line is not the JSON of an index. place is also nil for a
// page without a place.
func PeekIndex(index []byte) (resultCount int, place *upstream.Place) {
	header, _, _ := bytes.Cut(index, []byte{'\n'})
	var m indexHeader
	if json.Unmarshal(header, &m) != nil {
		return 0, nil
	}
	return m.ResultCount, m.Place
}

// indexReader reads index and body in parallel and remembers a mismatch in failed.
type indexReader struct {
	index, body []byte
	offset      int
	failed      bool
}

func (r *indexReader) uvarint() uint64 {
	v, n := binary.Uvarint(r.index)
	if n <= 0 {
		r.failed = true
		return 0
	}
	r.index = r.index[n:]
	return v
}

func (r *indexReader) varint() int64 {
	v, n := binary.Varint(r.index)
	if n <= 0 {
		r.failed = true
		return 0
	}
	r.index = r.index[n:]
	return v
}

// take returns the next n bytes of the body, without capacity for an append.
func (r *indexReader) take(n uint64) []byte {
	if r.failed || r.offset > len(r.body) || n > uint64(len(r.body)-r.offset) {
		r.failed = true
		return nil
	}
	start := r.offset
	r.offset += int(n)
	return r.body[start:r.offset:r.offset]
}
