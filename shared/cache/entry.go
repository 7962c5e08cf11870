package cache

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"strings"
	"time"
)

// Entry is one answer as it is kept: what is needed to judge it is at hand, its body stays compressed. An entry that
// was read is a view of the bytes that were read; it must not be changed.
type Entry struct {
	Status     int       // HTTP status of the answer; anything but 200 is a negative one
	FreshUntil time.Time // not a hit from then on
	KeptUntil  time.Time // not an answer at all from then on
	RatesUntil time.Time // when the rates in it grow old; zero: it has none
	Index      []byte    // the caller's own notes on the body, opaque here

	owners string // tenants whose goods are in it, comma-joined
	size   uint32 // of the body, bytes
	crc    uint32 // of the body, IEEE
	digest digest // of packed
	since  int64  // server's time when its making began, µs; 0: unknown
	packed []byte // the body as a gzip stream that only lacks its end; see pack.go
}

// Owners are the ids of the tenants whose goods are in the answer.
func (e *Entry) Owners() iter.Seq[string] {
	if e.owners == "" {
		return func(func(string) bool) {}
	}
	return strings.SplitSeq(e.owners, ",")
}

func (e *Entry) ratesOld(now time.Time) bool {
	return !e.RatesUntil.IsZero() && !now.Before(e.RatesUntil)
}

func (e *Entry) fresh(now time.Time) bool { return e != nil && now.Before(e.FreshUntil) }

// An entry in Redis is a header of fixed width, big-endian, then owners, index and packed body:
//
//	 0  1  version of this layout      32  4  size of the body
//	 2  2  status                      36  4  length of owners
//	 4  8  fresh until, Unix ms        40  4  length of index
//	12  8  kept until, Unix ms         44  8  since, server's µs
//	20  8  rates until, Unix ms or 0   52 16  digest
//	28  4  crc of the body             68  4  checksum of all the rest
const (
	layout     = 3
	headerSize = 72
	digestAt   = 52
	checksumAt = 68
)

// errUnreadable is what decode says of bytes that are not an entry of this layout, whole.
var errUnreadable = errors.New("cache: unreadable entry")

func (e *Entry) encode() []byte {
	b := make([]byte, headerSize, headerSize+len(e.owners)+len(e.Index)+len(e.packed))
	b[0] = layout
	binary.BigEndian.PutUint16(b[2:], uint16(e.Status))
	binary.BigEndian.PutUint64(b[4:], millis(e.FreshUntil))
	binary.BigEndian.PutUint64(b[12:], millis(e.KeptUntil))
	binary.BigEndian.PutUint64(b[20:], millis(e.RatesUntil))
	binary.BigEndian.PutUint32(b[28:], e.crc)
	binary.BigEndian.PutUint32(b[32:], e.size)
	binary.BigEndian.PutUint32(b[36:], uint32(len(e.owners)))
	binary.BigEndian.PutUint32(b[40:], uint32(len(e.Index)))
	binary.BigEndian.PutUint64(b[44:], uint64(e.since))
	copy(b[digestAt:], e.digest[:])
	b = append(b, e.owners...)
	b = append(b, e.Index...)
	b = append(b, e.packed...)
	binary.BigEndian.PutUint32(b[checksumAt:], checksum(b))
	return b
}

// decode slices; it copies no more than the owners. Bytes that were cut or changed, or that another version wrote, are
// refused, so that they are a miss.
func decode(b []byte) (*Entry, error) {
	if len(b) < headerSize || b[0] != layout {
		return nil, errUnreadable
	}
	owners := uint64(binary.BigEndian.Uint32(b[36:]))
	index := uint64(binary.BigEndian.Uint32(b[40:]))
	rest := b[headerSize:]
	if owners+index > uint64(len(rest)) || checksum(b) != binary.BigEndian.Uint32(b[checksumAt:]) {
		return nil, errUnreadable
	}
	return &Entry{
		Status:     int(binary.BigEndian.Uint16(b[2:])),
		FreshUntil: instant(binary.BigEndian.Uint64(b[4:])),
		KeptUntil:  instant(binary.BigEndian.Uint64(b[12:])),
		RatesUntil: instant(binary.BigEndian.Uint64(b[20:])),
		crc:        binary.BigEndian.Uint32(b[28:]),
		size:       binary.BigEndian.Uint32(b[32:]),
		since:      int64(binary.BigEndian.Uint64(b[44:])),
		digest:     digest(b[digestAt:checksumAt]),
		owners:     string(rest[:owners]),
		Index:      rest[owners : owners+index : owners+index],
		packed:     rest[owners+index:],
	}, nil
}

// checksum is of the kind that gzip has: to make the tables of another would be a fiftieth of a cold start.
func checksum(b []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(b[:checksumAt]), crc32.IEEETable, b[headerSize:])
}

func millis(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.UnixMilli())
}

func instant(ms uint64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)).UTC()
}

// Pack makes an entry of an answer: its status, body (at most 2 MiB), the ids of the tenants whose goods are in it, and
// the caller's notes. When it is fresh is for Do to say; RatesUntil may be set by the caller.
func Pack(status int, body []byte, owners []string, index []byte) (Entry, error) {
	if len(body) > maxBody {
		return Entry{}, fmt.Errorf("cache: pack: body of %d bytes is over %d", len(body), maxBody)
	}
	packed, err := pack(body)
	if err != nil {
		return Entry{}, fmt.Errorf("cache: pack: %w", err)
	}
	return Entry{
		Status: status,
		Index:  index,
		owners: strings.Join(owners, ","),
		size:   uint32(len(body)),
		crc:    crc32.ChecksumIEEE(body),
		digest: digestOf(packed),
		packed: packed,
	}, nil
}
