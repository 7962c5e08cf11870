// Package id owns the identifiers of the trade: a prefix that says what is named and a ULID that says when it was
// minted. It never decides whether an id is genuine or still in use; the room that owns the thing does.
package id

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
)

// Prefix names the kind of a thing and is the first part of its id, underscore included.
type Prefix string

// The kinds of things that are named by a prefixed ULID.
const (
	Session       Prefix = "gms_"
	SearchSession Prefix = "srs_"
	Wishlist      Prefix = "wsh_"
	Handoff       Prefix = "bhd_"
	PageView      Prefix = "mpv_"
	Funnel        Prefix = "cfe_"
	Event         Prefix = "evt_"
	Request       Prefix = "req_"
	Tenant        Prefix = "tnt_"
	Property      Prefix = "ppt_"
	BotScore      Prefix = "bsc_"
)

// ErrMalformed is returned for a text that is not the canonical form of an id with the expected prefix.
var ErrMalformed = errors.New("id: malformed")

// entropy is shared by the whole process, so that ids which are minted within one millisecond, with none of another one
// between them, sort in the order they were minted.
var entropy = struct {
	sync.Mutex
	*ulid.MonotonicEntropy
}{MonotonicEntropy: ulid.Monotonic(rand.Reader, 0)}

// New mints an id at the given time; it is safe for concurrent use. Ids of one millisecond ascend for whoever mints alone:
// where others may mint for other times meanwhile, as every process that serves does, order takes a Series.
func New(p Prefix, now time.Time) string { return FromUUID(p, newULID(now)) }

func newULID(now time.Time) ulid.ULID {
	// Before 1970 and beyond the year 10889 there is no ULID; such a clock is broken and its ids carry time zero.
	ms := uint64(max(now.UnixMilli(), 0))
	if ms > ulid.MaxTime() {
		ms = 0
	}
	entropy.Lock()
	u, err := ulid.New(ms, entropy.MonotonicEntropy)
	entropy.Unlock()
	if err != nil {
		// The 80 bits after the time ran over: start afresh. crypto/rand itself never fails.
		u = ulid.MustNew(ms, rand.Reader)
	}
	return u
}

// Derive makes the id that the same time and the same parts always make, so that telling something twice can be
// noticed. Who does not choose all of the parts cannot aim at an id that others have.
func Derive(p Prefix, at time.Time, parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	ms := uint64(min(max(at.UnixMilli(), 0), int64(ulid.MaxTime())))
	u, err := ulid.New(ms, bytes.NewReader(sum.Sum(nil)))
	if err != nil {
		panic(err) // unreachable: the time fits, and a digest has more than the 10 bytes that are read
	}
	return FromUUID(p, u)
}

// LowerBound is before every id minted at that time or later, and after every earlier one.
func LowerBound(p Prefix, at time.Time) string {
	var u ulid.ULID
	ms := uint64(min(max(at.UnixMilli(), 0), int64(ulid.MaxTime())))
	_ = u.SetTime(ms) // unreachable error: the time fits
	return FromUUID(p, u)
}

// Parse returns the ULID of an id that has exactly the given prefix and 26 upper-case Crockford characters, else
// ErrMalformed.
func Parse(p Prefix, s string) (ulid.ULID, error) {
	text, ok := strings.CutPrefix(s, string(p))
	if !ok {
		return ulid.ULID{}, ErrMalformed
	}
	return parse(text)
}

// Valid reports whether Parse would accept the id.
func Valid(p Prefix, s string) bool {
	_, err := Parse(p, s)
	return err == nil
}

// Time returns when a valid id of any prefix was minted, in UTC to the millisecond; the zero time for anything else.
func Time(s string) time.Time {
	cut := len(s) - ulid.EncodedSize
	if cut < 1 || s[cut-1] != '_' {
		return time.Time{}
	}
	u, err := parse(s[cut:])
	if err != nil {
		return time.Time{}
	}
	return u.Timestamp().UTC()
}

// UUID returns the 128 bits of an id, as the database keeps tenants and properties.
func UUID(p Prefix, s string) ([16]byte, error) {
	u, err := Parse(p, s)
	return u, err
}

// FromUUID is the inverse of UUID: any 128 bits are an id.
func FromUUID(p Prefix, u [16]byte) string {
	var text [48]byte // longest prefix and 26 characters
	b := append(text[:0], p...)
	b = b[:len(b)+ulid.EncodedSize]
	_ = ulid.ULID(u).MarshalTextTo(b[len(p):]) // unreachable error: the size is right
	return string(b)
}

// parse accepts the canonical form alone: ulid.Parse looks at no character, and ParseStrict takes lower case too.
func parse(text string) (ulid.ULID, error) {
	for i := range len(text) {
		if 'a' <= text[i] && text[i] <= 'z' {
			return ulid.ULID{}, ErrMalformed
		}
	}
	u, err := ulid.ParseStrict(text)
	if err != nil {
		return ulid.ULID{}, ErrMalformed
	}
	return u, nil
}
