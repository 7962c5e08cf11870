// Package digest owns the text form of a SHA-256 in bodies, messages and keys: "sha256:" and 64 hex
// digits. It does not hash, and knows neither inputs nor secrets. All functions are pure.
package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
)

const prefix = "sha256:"

// Format returns the text form of a sum.
func Format(sum []byte) string {
	var text [len(prefix) + 2*sha256.Size]byte
	return string(hex.AppendEncode(append(text[:0], prefix...), sum))
}

// Parse is the inverse of Format, for a sum of any length. The error does not repeat s.
func Parse(s string) ([]byte, error) {
	digits, ok := strings.CutPrefix(s, prefix)
	sum, err := hex.DecodeString(digits)
	if !ok || err != nil {
		return nil, errors.New("digest: not sha256:<hex>")
	}
	return sum, nil
}

// Hex returns only the hex digits of a text form, for a key name.
func Hex(s string) string { return strings.TrimPrefix(s, prefix) }
