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

// A session id proves itself (docs/spec/routes.md#session-cookie): of the ULID's 80 bits after the time, 24 are random and 56
// are an HMAC over time and random part. So nobody can choose a guest's id, and a genuine one needs no
// lookup to be believed, also while Redis is away.
const (
	idPurpose    = "guest-session-id.v1"
	timeBytes    = 6
	randBytes    = 3
	maxIDAge     = 365 * 24 * time.Hour
	maxClockSkew = time.Minute // between instances: an id minted by a neighbour a moment ahead is not from the future
)

// mintID makes a gms_ id dated now, signed by the ring's active key.
func mintID(ring keyring.Ring, now time.Time) string {
	var u ulid.ULID
	var stamp [8]byte
	binary.BigEndian.PutUint64(stamp[:], uint64(now.UnixMilli()))
	copy(u[:timeBytes], stamp[2:])
	rand.Read(u[timeBytes : timeBytes+randBytes]) // never fails: the runtime aborts instead
	copy(u[timeBytes+randBytes:], idMAC(ring.Active(), u))
	return string(id.Session) + u.String()
}

// verifyID says whether any key of the ring minted s, not in the future and at most 365 days ago.
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

func idMAC(k keyring.Key, u ulid.ULID) []byte {
	return k.Sum(idPurpose, u[:timeBytes+randBytes])[:len(u)-timeBytes-randBytes]
}

// Bucket is what upstreams are told of a session: a peppered hash, opaque and stable.
func (r *Store) Bucket(sessionID string) string {
	return digest.Format(r.peppers.Active().Sum("user-bucket.v1", []byte(sessionID)))
}
