package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
)

// seed is the source of what is derived for one row: it gives each question its own answer, so that a new
// question changes none of the old ones.
type seed [sha256.Size]byte

func seedOf(kind, key string) seed { return sha256.Sum256([]byte("sandbox 1\n" + kind + "\n" + key)) }

// draw answers a question with 64 evenly spread bits.
func (s seed) draw(question string) uint64 {
	h := uint64(14695981039346656037) // FNV-1a, then mixed with the seed
	for i := range len(question) {
		h = (h ^ uint64(question[i])) * 1099511628211
	}
	return Mix(binary.LittleEndian.Uint64(s[:8]) ^ h)
}

// pick answers with 0 … n-1.
func (s seed) pick(question string, n int) int { return int(s.draw(question) % uint64(n)) }

// chance is true for so many of a hundred rows.
func (s seed) chance(question string, n int) bool { return s.pick(question, 100) < n }

// between answers with low … high.
func (s seed) between(question string, low, high int) int { return low + s.pick(question, high-low+1) }

// Mix spreads a number over all 64 bits (the finaliser of SplitMix64).
func Mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// epoch is when the first of our ids could have been minted; all of them are from the two years after it.
var epoch = time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// ulid is a valid id of the given kind that depends on nothing but the seed.
func (s seed) ulid(p id.Prefix) string {
	var u [16]byte
	copy(u[:], s[16:])
	ms := uint64(epoch) + s.draw("minted")%(2*365*24*3600*1000)
	for i := range 6 {
		u[i] = byte(ms >> (8 * (5 - i)))
	}
	return id.FromUUID(p, u)
}
