package event

import (
	"crypto/sha256"
	"encoding/binary"
)

// IsSampled reports whether a session belongs to the share rate (0 … 1) of sessions to report for a
// subject; none at 0 or NaN, all from 1. The result depends only on a SHA-256 of the session id:
// all instances decide alike, a funnel is reported completely or not at all, and a session sampled
// at one rate is sampled at every higher rate. IsSampled never fails and accepts any text, "" too.
// Pure.
func IsSampled(sessionID string, rate float64) bool {
	sum := sha256.Sum256([]byte(sessionID))
	// A float64 holds 53 bits exactly. The largest value is below 1, so rate 1 includes every
	// session.
	return float64(binary.BigEndian.Uint64(sum[:])>>11)/(1<<53) < rate
}
