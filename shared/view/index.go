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

// meta is what the index says besides the items.
type meta struct {
	Member      string          `json:"m"`
	ResultCount int             `json:"n"`
	Degraded    []Degraded      `json:"d,omitempty"`
	Place       *upstream.Place `json:"p"`
	Items       int             `json:"i"`
	Rest        int             `json:"r"` // length
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
