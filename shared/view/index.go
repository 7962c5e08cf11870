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

// indexHeader is what the index says besides the items.
type indexHeader struct {
	Member      string          `json:"m"`
	ResultCount int             `json:"n"`
	Degraded    []Degraded      `json:"d,omitempty"`
	Place       *upstream.Place `json:"p"`
	Items       int             `json:"i"`
	Extra       int             `json:"r"` // length
}

// Encode writes the page's body and the index that opens it again. The index refers to tenants by their
// place in Owners.
func (p *Page) Encode() (body, index []byte, err error) {
	m := indexHeader{p.Member, p.ResultCount, p.Degraded, p.Place, len(p.Items), len(p.Extra)}
	if index, err = json.Marshal(m); err != nil {
		return nil, nil, fmt.Errorf("view: encode index: %w", err)
	}
	index = append(index, '\n')
	place := map[string]uint64{}
	for n, owner := range p.TenantIDs() {
		place[owner] = uint64(n)
	}
	body = fmt.Appendf(nil, `{"%s":[`, p.Member)
	for n, i := range p.Items {
		if n > 0 {
			body = append(body, ',')
		}
		body = append(append(append(body, i.Base...), i.Rate...), '}')
		index = binary.AppendUvarint(index, place[i.TenantID])
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

var errIndex = errors.New("view: index does not fit its body")

// DecodePage is the inverse of Encode. The page aliases body. A body that does not fit is an error, never a panic.
func DecodePage(body, index []byte, owners []string) (*Page, error) {
	head, marks, ok := bytes.Cut(index, []byte{'\n'})
	var m indexHeader
	if !ok || json.Unmarshal(head, &m) != nil || m.Extra < 0 || m.Extra > len(body) || m.Items < 0 || m.Items > len(marks) {
		return nil, errIndex
	}
	p := &Page{Member: m.Member, ResultCount: m.ResultCount, Degraded: m.Degraded, Place: m.Place, Extra: body[len(body)-m.Extra:]}
	r := indexReader{index: marks, body: body, offset: len(m.Member) + len(`{"":[`)}
	for range m.Items {
		owner, bare, rate := r.uvarint(), r.uvarint(), r.uvarint()
		i := Item{Base: r.take(bare), Rate: r.take(rate)}
		r.offset += len(`},`)
		if len(i.Rate) > 0 {
			i.RateFreshUntil = time.UnixMilli(r.varint())
		}
		if r.failed || owner >= uint64(len(owners)) {
			return nil, errIndex
		}
		i.TenantID = owners[owner]
		p.Items = append(p.Items, i)
	}
	return p, nil
}

// PeekIndex reads the result count and the place without opening the page.
func PeekIndex(index []byte) (resultCount int, place *upstream.Place) {
	head, _, _ := bytes.Cut(index, []byte{'\n'})
	var m indexHeader
	if json.Unmarshal(head, &m) != nil {
		return 0, nil
	}
	return m.ResultCount, m.Place
}

// indexReader walks index and body together and remembers that something did not fit.
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

// take cuts the next n bytes of the body, with no room to append behind them.
func (r *indexReader) take(n uint64) []byte {
	if r.failed || r.offset > len(r.body) || n > uint64(len(r.body)-r.offset) {
		r.failed = true
		return nil
	}
	start := r.offset
	r.offset += int(n)
	return r.body[start:r.offset:r.offset]
}
