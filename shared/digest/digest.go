// Package digest owns how a SHA-256 is written in bodies, messages and keys: "sha256:" and 64 hex digits. It never says
// what was hashed, or with which secret.
package digest

import (
	"encoding/hex"
	"errors"
	"strings"
)

const prefix = "sha256:"

// Text writes a sum.
func Text(sum []byte) string { return prefix + hex.EncodeToString(sum) }

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
