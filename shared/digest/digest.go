// Package digest owns how a SHA-256 is written in bodies, messages and keys: "sha256:" and 64 hex digits. It never says
// what was hashed, or with which secret.
package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
)

const prefix = "sha256:"

// Format writes a sum.
func Format(sum []byte) string {
	var text [len(prefix) + 2*sha256.Size]byte
	return string(hex.AppendEncode(append(text[:0], prefix...), sum))
}

// Parse is the inverse of Text, for a sum of any length. Its error does not repeat s.
func Parse(s string) ([]byte, error) {
	digits, ok := strings.CutPrefix(s, prefix)
	sum, err := hex.DecodeString(digits)
	if !ok || err != nil {
		return nil, errors.New("digest: not sha256:<hex>")
	}
	return sum, nil
}

// Hex is a text's hex digits alone, for the name of a key.
func Hex(s string) string { return strings.TrimPrefix(s, prefix) }
