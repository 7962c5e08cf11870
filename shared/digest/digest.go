// Package digest owns the text form of a SHA-256 in bodies, messages and keys: "sha256:" and 64 hex
// digits. The package does not hash, and knows neither inputs nor secrets. All functions are pure.
package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
)

const prefix = "sha256:"

// Format returns the text form of a sum of any length, in lower case. It never fails.
func Format(sum []byte) string {
	var text [len(prefix) + 2*sha256.Size]byte
	return string(hex.AppendEncode(append(text[:0], prefix...), sum))
}

// Parse is the inverse of Format, for a sum of any length, also empty: Parse does not require 32
// bytes. Upper-case digits are valid too. Any other text gives nil and an error without the text.
func Parse(s string) ([]byte, error) {
	digits, ok := strings.CutPrefix(s, prefix)
	sum, err := hex.DecodeString(digits)
	if !ok || err != nil {
		return nil, errors.New("digest: not sha256:<hex>")
	}
	return sum, nil
}

// Hex returns only the hex digits of a text form, for a key name. Hex checks nothing: a text
// without the prefix comes back unchanged.
func Hex(s string) string { return strings.TrimPrefix(s, prefix) }
