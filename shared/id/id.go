// Package id owns the ids of the domain: a prefix for the kind of thing, and a ULID with the
// creation time. It does no I/O and never decides whether an id exists; the package that owns the
// data does.
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

// Prefix is the kind of a thing and the first part of an id, underscore included.
type Prefix string

// The prefixes.
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

// ErrMalformed is the error for a text that is not a canonical id with the expected prefix.
var ErrMalformed = errors.New("id: malformed")

// entropy is shared by the whole process: ids of the same millisecond sort in order of creation, if
// no id of another time was created in between.
var entropy = struct {
	sync.Mutex
	*ulid.MonotonicEntropy
}{MonotonicEntropy: ulid.Monotonic(rand.Reader, 0)}

// New returns a new id with the time now, random otherwise. A now before 1970 or after the year
// 10889 gives an id with time 0. New never fails for a prefix of this package, does no I/O and
// takes a mutex of the process for a moment. Safe for concurrent use. Ids of the same millisecond
// are ascending only if no other goroutine creates ids with other times in between; a serving
// process that needs order uses Monotonic.
func New(p Prefix, now time.Time) string { return FromUUID(p, newULID(now)) }

// newULID returns a ULID with the time now.
func newULID(now time.Time) ulid.ULID {
	// No ULID exists before 1970 or after the year 10889; ids of such a broken clock have time 0.
	ms := uint64(max(now.UnixMilli(), 0))
	if ms > ulid.MaxTime() {
		ms = 0
	}
	entropy.Lock()
	u, err := ulid.New(ms, entropy.MonotonicEntropy)
	entropy.Unlock()
	if err != nil {
		// Overflow of the 80 bits after the time: take new random bits. crypto/rand never fails.
		u = ulid.MustNew(ms, rand.Reader)
	}
	return u
}

// Derive returns an id from a SHA-256 of the parts and the time in milliseconds: the same input
// always gives the same id, so that repeated events can be detected, and anybody who knows the
// input can compute the id. Nobody can aim at an existing id without choosing all parts. Derive
// clamps the time to the years 1970 to 10889, takes no lock, and never fails for a prefix of this
// package. Pure.
func Derive(p Prefix, at time.Time, parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	ms := uint64(min(max(at.UnixMilli(), 0), int64(ulid.MaxTime())))
	u, err := ulid.New(ms, bytes.NewReader(sum.Sum(nil)))
	if err != nil {
		panic(err) // unreachable: the time fits, and ulid.New reads 10 of 32 bytes
	}
	return FromUUID(p, u)
}

// LowerBound returns the smallest id with the time at, cut to milliseconds: ids created at this
// time or later sort at or above the bound, earlier ids below. LowerBound clamps the time to the
// years 1970 to 10889 and never fails for a prefix of this package. Pure.
func LowerBound(p Prefix, at time.Time) string {
	var u ulid.ULID
	ms := uint64(min(max(at.UnixMilli(), 0), int64(ulid.MaxTime())))
	_ = u.SetTime(ms) // unreachable error: the time fits
	return FromUUID(p, u)
}

// Parse returns the ULID of an id with exactly the prefix p and 26 upper-case Crockford characters,
// the first at most 7; otherwise the zero ULID and ErrMalformed. Pure.
func Parse(p Prefix, s string) (ulid.ULID, error) {
	text, ok := strings.CutPrefix(s, string(p))
	if !ok {
		return ulid.ULID{}, ErrMalformed
	}
	return parse(text)
}

// Valid reports whether Parse accepts the id. It does not tell whether the id exists. Pure.
func Valid(p Prefix, s string) bool {
	_, err := Parse(p, s)
	return err == nil
}

// Time returns the creation time of a well-formed id with any prefix that ends in "_", in UTC to
// the millisecond; the zero time for any other text. The time is the claim of the id's creator.
// Pure.
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

// UUID returns the 128 bits of an id, the database form of tenant and property ids; otherwise zeros
// and ErrMalformed, as for Parse. Pure.
func UUID(p Prefix, s string) ([16]byte, error) {
	u, err := Parse(p, s)
	return u, err
}

// FromUUID is the inverse of UUID. Any 128 bits give an id. A prefix over 22 bytes panics; those of
// this package have 4. Pure.
func FromUUID(p Prefix, u [16]byte) string {
	var text [48]byte // longest prefix and 26 characters
	b := append(text[:0], p...)
	b = b[:len(b)+ulid.EncodedSize]
	_ = ulid.ULID(u).MarshalTextTo(b[len(p):]) // unreachable error: the size is right
	return string(b)
}

// parse accepts only the canonical form: ulid.Parse checks no characters, and ParseStrict also
// accepts lower case.
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
