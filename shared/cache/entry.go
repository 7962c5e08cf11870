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

// Entry is a stored response: the fields that decide about its use, and the body, which stays
// compressed. An entry from GetOrLoad is a shared view of the bytes from Redis; do not change the
// entry. Reading is safe for concurrent use.
type Entry struct {
	Status          int       // HTTP status of the response; any status but 200 makes the entry negative
	FreshUntil      time.Time // from then on the entry is stale
	ExpiresAt       time.Time // from then on the entry is a miss
	RatesFreshUntil time.Time // from then on the rates in the body are old; zero: no rates
	Index           []byte    // the caller's own data about the body; the cache does not interpret it

	tenantIDs  string // ids of the tenants whose properties the body shows, comma-separated
	size       uint32 // of the body, bytes
	crc        uint32 // of the body, IEEE
	digest     digest // of compressed
	startedAt  int64  // server time when the load began, µs; 0: unknown
	compressed []byte // the body as a gzip stream without its end; see gzip.go
}

// TenantIDs yields the ids of the tenants whose properties the body shows, in the order given to
// NewEntry; no id for an entry without tenants. CPU only; it never fails.
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

// In Redis an entry is a header of fixed width, big-endian, then tenant ids, index and compressed
// body:
//
//	 0  1  version of this layout      32  4  size of the body
//	 2  2  status                      36  4  length of the tenant ids
//	 4  8  fresh until, Unix ms        40  4  length of the index
//	12  8  expires at, Unix ms         44  8  load began, server time in µs
//	20  8  rates until, Unix ms or 0   52 16  digest
//	28  4  CRC of the body             68  4  checksum of all other bytes
const (
	formatVersion  = 3
	headerSize     = 72
	digestOffset   = 52
	checksumOffset = 68
)

// errCorrupt means that bytes are not a complete entry of this layout.
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

// decode returns an entry that refers to b; it copies only the tenant ids. It returns errCorrupt
// for truncated or changed bytes and for another layout version; the caller treats the error as a
// miss.
func decode(b []byte) (*Entry, error) {
	if len(b) < headerSize || b[0] != formatVersion {
		return nil, errCorrupt
	}
	tenantIDs := uint64(binary.BigEndian.Uint32(b[36:]))
	index := uint64(binary.BigEndian.Uint32(b[40:]))
	rest := b[headerSize:]
	if tenantIDs+index > uint64(len(rest)) || checksum(b) != binary.BigEndian.Uint32(b[checksumOffset:]) {
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
		tenantIDs:       string(rest[:tenantIDs]),
		Index:           rest[tenantIDs : tenantIDs+index : tenantIDs+index],
		compressed:      rest[tenantIDs+index:],
	}, nil
}

// checksum uses the CRC of gzip: building the tables of another CRC would take 2 % of a cold start.
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

// NewEntry compresses body (at most 2 MiB) and returns an entry with the status, the ids of the
// tenants whose properties the body shows, and the caller's index. The entry keeps index, not body;
// do not change index. GetOrLoad sets FreshUntil and ExpiresAt; the caller may set RatesFreshUntil.
// NewEntry does no I/O and takes no lock; the cost is the compression and a SHA-256. It returns an
// error only for a body over 2 MiB and checks no other argument: the ids must not contain commas.
// Its compressors, of 1 MB each, are reused. Safe for concurrent use.
func NewEntry(status int, body []byte, tenantIDs []string, index []byte) (Entry, error) {
	if len(body) > maxBody {
		return Entry{}, fmt.Errorf("cache: compress: body of %d bytes exceeds %d", len(body), maxBody)
	}
	compressed, err := compress(body)
	if err != nil {
		return Entry{}, fmt.Errorf("cache: compress: %w", err)
	}
	return Entry{
		Status:     status,
		Index:      index,
		tenantIDs:  strings.Join(tenantIDs, ","),
		size:       uint32(len(body)),
		crc:        crc32.ChecksumIEEE(body),
		digest:     digestOf(compressed),
		compressed: compressed,
	}, nil
}
