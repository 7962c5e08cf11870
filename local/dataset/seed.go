package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

// seed derives values for a row: a hash of the row's key. Each value has a question, a constant
// text that names the value, so a new question changes no existing value. Changing a question or a
// seed's key changes the derived values.
type seed [sha256.Size]byte

func seedOf(kind, key string) seed { return sha256.Sum256([]byte("sandbox 1\n" + kind + "\n" + key)) }

// draw returns 64 evenly distributed bits for a question.
func (s seed) draw(question string) uint64 {
	h := uint64(14695981039346656037) // FNV-1a of the question, mixed with the seed
	for i := range len(question) {
		h = (h ^ uint64(question[i])) * 1099511628211
	}
	return Mix(binary.LittleEndian.Uint64(s[:8]) ^ h)
}

// pick returns a number from 0 to n-1 for a question.
func (s seed) pick(question string, n int) int { return int(s.draw(question) % uint64(n)) }

// chance returns true with a probability of n percent.
func (s seed) chance(question string, n int) bool { return s.pick(question, 100) < n }

// between returns a number from low to high inclusive.
func (s seed) between(question string, low, high int) int { return low + s.pick(question, high-low+1) }

// Mix distributes x over all 64 bits: a step of SplitMix64. It is pure.
func Mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// epoch is the earliest timestamp of a derived id, in milliseconds. All ids are within two years of
// it.
var epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// ulid returns a valid id with a prefix. The id depends on the seed only.
func (s seed) ulid(p id.Prefix) string {
	var u [16]byte
	copy(u[:], s[16:])
	ms := uint64(epoch) + s.draw("minted")%(2*365*24*3600*1000)
	for i := range 6 {
		u[i] = byte(ms >> (8 * (5 - i)))
	}
	return id.FromUUID(p, u)
}
