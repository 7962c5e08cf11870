package handoff

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
)

// Errors of verification. The texts never repeat the token.
var (
	ErrSignature = errors.New("handoff: invalid token")
	ErrExpired   = errors.New("handoff: expired token")
)

const (
	maxTokenLength = 512         // characters; a real token has about 370
	maxClockSkew   = time.Minute // between the clocks of the signer and of the receiver
)

// encoding is base64url without padding. Strict rejects trailing bits, but the decoder still skips
// line ends; splitToken rejects line ends.
var encoding = base64.RawURLEncoding.Strict()

// Keys holds the keys of handoff tokens, which have no further use. The first key is active and
// signs; the remaining keys are in the grace period and only verify. The zero value signs and
// verifies no token. Keys is safe for concurrent use.
type Keys struct{ ring keyring.Ring }

// ParseKeys reads "hmac-2026-11:base64,hmac-2026-05:base64", the active key first. Deploy a new key
// in the second place before the key becomes active: every receiver can then verify the first
// tokens. ParseKeys returns the errors of keyring.Parse (keyring.ErrEmpty for an empty string), and
// an error for a key id that is not hmac-YYYY-MM, with the zero Keys. No error contains a secret.
// CPU only.
func ParseKeys(s string) (Keys, error) {
	ring, err := keyring.Parse(s)
	if err != nil {
		return Keys{}, fmt.Errorf("handoff: %w", err)
	}
	for _, key := range ring {
		if !validKeyID(key.ID) {
			return Keys{}, fmt.Errorf("handoff: key id %q is not hmac-YYYY-MM", key.ID)
		}
	}
	return Keys{ring}, nil
}

// UnmarshalText implements encoding.TextUnmarshaler by ParseKeys, for configuration structs. After
// an error *k is the zero value. Not safe for use concurrent with other methods.
func (k *Keys) UnmarshalText(text []byte) (err error) {
	*k, err = ParseKeys(string(text))
	return err
}

// Sign returns the token of h: base64url(canonical string) "." base64url(HMAC-SHA-256 of the
// canonical string). Sign sets ExpiresAt and KeyID of h and truncates MintedAt to milliseconds in
// UTC, also if it fails for an invalid field. For an invalid field of h Sign returns "" and an
// error with the name of the field, not the value; without keys, keyring.ErrEmpty. CPU only: an
// HMAC. The same h and key give the same token. Concurrent calls need different h.
func (k Keys) Sign(h *Handoff) (token string, err error) {
	if len(k.ring) == 0 {
		return "", fmt.Errorf("handoff: sign: %w", keyring.ErrEmpty)
	}
	key := k.ring.Active()
	h.MintedAt = h.MintedAt.UTC().Truncate(time.Millisecond)
	h.ExpiresAt = h.MintedAt.Add(TTL)
	h.KeyID = key.ID
	if err := h.validate(); err != nil {
		return "", fmt.Errorf("handoff: sign: %w", err)
	}
	return signText(h.canonical(), key), nil
}

// signText returns the token of a canonical string.
func signText(text []byte, key keyring.Key) string {
	return encoding.EncodeToString(text) + "." + encoding.EncodeToString(key.HMAC(text))
}

// VerifySignature returns the content of a token, expired or not. VerifySignature returns
// ErrSignature and a zero Handoff for any token that Sign cannot have returned with one of these
// keys, also for the empty token and without keys. Before the MAC is verified, only the key id is
// read. CPU only: decoding, which rejects more than 512 characters at once, and an HMAC.
func (k Keys) VerifySignature(token string) (Handoff, error) {
	text, mac, ok := splitToken(token)
	if !ok {
		return Handoff{}, fmt.Errorf("%w: malformed", ErrSignature)
	}
	key, known := k.ring.Find(text[strings.LastIndexByte(text, '\n')+1:])
	if !known {
		return Handoff{}, fmt.Errorf("%w: unknown key", ErrSignature)
	}
	if !hmac.Equal(mac, key.HMAC([]byte(text))) {
		return Handoff{}, fmt.Errorf("%w: MAC differs", ErrSignature)
	}
	h, err := parseCanonical(text)
	if err != nil {
		return Handoff{}, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	return h, nil
}

// Verify returns the content of a token that is valid now. It returns ErrExpired from 30 minutes
// after minting, and ErrSignature like VerifySignature or if the token was minted more than a
// minute after now; the Handoff is zero with an error. Verify does not check whether the token was
// used before; the ledger of the issuer does. CPU only.
func (k Keys) Verify(token string, now time.Time) (Handoff, error) {
	h, err := k.VerifySignature(token)
	switch {
	case err != nil:
		return Handoff{}, err
	case h.MintedAt.After(now.Add(maxClockSkew)):
		return Handoff{}, fmt.Errorf("%w: minted in the future", ErrSignature)
	case !now.Before(h.ExpiresAt):
		return Handoff{}, ErrExpired
	}
	return h, nil
}

// splitToken decodes the two parts of a token. A token that does not encode to the same characters
// again is rejected: each text has exactly one token.
func splitToken(token string) (text string, mac []byte, ok bool) {
	if len(token) > maxTokenLength {
		return "", nil, false
	}
	first, second, _ := strings.Cut(token, ".")
	body, err := encoding.DecodeString(first)
	mac, err2 := encoding.DecodeString(second)
	if err != nil || err2 != nil || len(mac) != sha256.Size {
		return "", nil, false
	}
	if encoding.EncodeToString(body)+"."+encoding.EncodeToString(mac) != token {
		return "", nil, false
	}
	return string(body), mac, true
}
