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
	Status          int       // HTTP status of the answer; anything but 200 is a negative one
	FreshUntil      time.Time // not a hit from then on
	ExpiresAt       time.Time // not an answer at all from then on
	RatesFreshUntil time.Time // when the rates in it grow old; zero: it has none
	Index           []byte    // the caller's own notes on the body, opaque here

	tenantIDs  string // tenants whose goods are in it, comma-joined
	size       uint32 // of the body, bytes
	crc        uint32 // of the body, IEEE
	digest     digest // of packed
	startedAt  int64  // server's time when its making began, µs; 0: unknown
	compressed []byte // the body as a gzip stream that only lacks its end; see pack.go
}

// TenantIDs are the ids of the tenants whose goods are in the answer.
func (e *Entry) TenantIDs() iter.Seq[string] {
	if e.tenantIDs == "" {
		return func(func(string) bool) {}
	}
	return strings.SplitSeq(e.tenantIDs, ",")
}

func (e *Entry) ratesStale(now time.Time) bool {
	return !e.RatesFreshUntil.IsZero() && !now.Before(e.RatesFreshUntil)
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
	formatVersion  = 3
	headerSize     = 72
	digestOffset   = 52
	checksumOffset = 68
)

// errCorrupt is what decode says of bytes that are not an entry of this layout, whole.
var errCorrupt = errors.New("cache: unreadable entry")

func (e *Entry) encode() []byte {
	b := make([]byte, headerSize, headerSize+len(e.tenantIDs)+len(e.Index)+len(e.compressed))
	b[0] = formatVersion
	binary.BigEndian.PutUint16(b[2:], uint16(e.Status))
	binary.BigEndian.PutUint64(b[4:], unixMillis(e.FreshUntil))
	binary.BigEndian.PutUint64(b[12:], unixMillis(e.ExpiresAt))
	binary.BigEndian.PutUint64(b[20:], unixMillis(e.RatesFreshUntil))
	binary.BigEndian.PutUint32(b[28:], e.crc)
	binary.BigEndian.PutUint32(b[32:], e.size)
	binary.BigEndian.PutUint32(b[36:], uint32(len(e.tenantIDs)))
	binary.BigEndian.PutUint32(b[40:], uint32(len(e.Index)))
	binary.BigEndian.PutUint64(b[44:], uint64(e.startedAt))
	copy(b[digestOffset:], e.digest[:])
	b = append(b, e.tenantIDs...)
	b = append(b, e.Index...)
	b = append(b, e.compressed...)
	binary.BigEndian.PutUint32(b[checksumOffset:], checksum(b))
	return b
}

// decode slices; it copies no more than the owners. Bytes that were cut or changed, or that another version wrote, are
// refused, so that they are a miss.
func decode(b []byte) (*Entry, error) {
	if len(b) < headerSize || b[0] != formatVersion {
		return nil, errCorrupt
	}
	owners := uint64(binary.BigEndian.Uint32(b[36:]))
	index := uint64(binary.BigEndian.Uint32(b[40:]))
	rest := b[headerSize:]
	if owners+index > uint64(len(rest)) || checksum(b) != binary.BigEndian.Uint32(b[checksumOffset:]) {
		return nil, errCorrupt
	}
	return &Entry{
		Status:          int(binary.BigEndian.Uint16(b[2:])),
		FreshUntil:      fromUnixMillis(binary.BigEndian.Uint64(b[4:])),
		ExpiresAt:       fromUnixMillis(binary.BigEndian.Uint64(b[12:])),
		RatesFreshUntil: fromUnixMillis(binary.BigEndian.Uint64(b[20:])),
		crc:             binary.BigEndian.Uint32(b[28:]),
		size:            binary.BigEndian.Uint32(b[32:]),
		startedAt:       int64(binary.BigEndian.Uint64(b[44:])),
		digest:          digest(b[digestOffset:checksumOffset]),
		tenantIDs:       string(rest[:owners]),
		Index:           rest[owners : owners+index : owners+index],
		compressed:      rest[owners+index:],
	}, nil
}

// checksum is of the kind that gzip has: to make the tables of another would be a fiftieth of a cold start.
func checksum(b []byte) uint32 {
	return crc32.Update(crc32.ChecksumIEEE(b[:checksumOffset]), crc32.IEEETable, b[headerSize:])
}

func unixMillis(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.UnixMilli())
}

func fromUnixMillis(ms uint64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(ms)).UTC()
}

// NewEntry makes an entry of an answer: its status, body (at most 2 MiB), the ids of the tenants whose goods are in it, and
// the caller's notes. When it is fresh is for Do to say; RatesUntil may be set by the caller.
func NewEntry(status int, body []byte, owners []string, index []byte) (Entry, error) {
	if len(body) > maxBody {
		return Entry{}, fmt.Errorf("cache: pack: body of %d bytes is over %d", len(body), maxBody)
	}
	packed, err := compress(body)
	if err != nil {
		return Entry{}, fmt.Errorf("cache: pack: %w", err)
	}
	return Entry{
		Status:     status,
		Index:      index,
		tenantIDs:  strings.Join(owners, ","),
		size:       uint32(len(body)),
		crc:        crc32.ChecksumIEEE(body),
		digest:     digestOf(packed),
		compressed: packed,
	}, nil
}
