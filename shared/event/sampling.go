package event

import (
	"crypto/sha256"
	"encoding/binary"
)

// IsSampled says whether a session belongs to the given share (0 … 1) of all sessions. It is decided by a
// hash of the id alone, so a session's funnel is reported whole or not at all, by every instance, and a
// session that is in at one rate is in at every higher one.
func IsSampled(sessionID string, rate float64) bool {
	sum := sha256.Sum256([]byte(sessionID))
	// 53 bits fit a float64 exactly; the largest stays below 1, so that rate 1 takes everybody.
	return float64(binary.BigEndian.Uint64(sum[:])>>11)/(1<<53) < rate
}
