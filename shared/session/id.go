package session

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"time"

	"github.com/oklog/ulid/v2"

	"melmastoon.ghasi.io/bff-consumer/shared/digest"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
)

// A session id is self-authenticating (docs/spec/routes.md#session-cookie): of the 80 bits after
// the time of the ULID, 24 are random and 56 are an HMAC over time and random part. A client cannot
// choose an id, and this service recognises its own ids without a lookup, also while Redis is away.
const (
	idPurpose    = "guest-session-id.v1"
	timeBytes    = 6
	randBytes    = 3
	maxIDAge     = 365 * 24 * time.Hour
	maxClockSkew = time.Minute // between instances: the clock of the minting instance may be ahead
)

// mintID returns a new gms_ id dated now, signed with the ring's active key. It never fails.
func mintID(ring keyring.Ring, now time.Time) string {
	var u ulid.ULID
	var stamp [8]byte
	binary.BigEndian.PutUint64(stamp[:], uint64(now.UnixMilli()))
	copy(u[:timeBytes], stamp[2:])
	rand.Read(u[timeBytes : timeBytes+randBytes]) // never fails: the runtime aborts instead
	copy(u[timeBytes+randBytes:], idMAC(ring.Active(), u))
	return string(id.Session) + u.String()
}

// verifyID reports whether a key of the ring signed s, at most 365 days ago and at most one minute
// in the future.
func verifyID(ring keyring.Ring, s string, now time.Time) bool {
	u, err := id.Parse(id.Session, s)
	if err != nil {
		return false
	}
	minted := ulid.Time(u.Time())
	if minted.After(now.Add(maxClockSkew)) || now.Sub(minted) > maxIDAge {
		return false
	}
	for _, k := range ring {
		if hmac.Equal(idMAC(k, u), u[timeBytes+randBytes:]) {
			return true
		}
	}
	return false
}

// idMAC returns the 56 bits of HMAC that belong into u.
func idMAC(k keyring.Key, u ulid.ULID) []byte {
	return k.Sum(idPurpose, u[:timeBytes+randBytes])[:len(u)-timeBytes-randBytes]
}

// Bucket returns the peppered hash, sha256:<hex>, by which upstreams know a session. The hash stays
// the same until the active pepper changes, and does not reveal the id. Bucket costs an HMAC and
// never fails; a store without peppers panics.
func (st *Store) Bucket(sessionID string) string {
	return digest.Format(st.peppers.Active().Sum("user-bucket.v1", []byte(sessionID)))
}
