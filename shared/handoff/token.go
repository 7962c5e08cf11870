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

// Verdicts on a token. Both leave out what the token said.
var (
	ErrSignature = errors.New("handoff: not genuine")
	ErrExpired   = errors.New("handoff: expired")
)

const (
	maxTokenLength = 512         // characters; a real one has about 370
	maxClockSkew   = time.Minute // between the signer's clock and ours
)

// encoding is base64url without padding. Strict makes it refuse odd bits at the end; line ends it skips all the same.
var encoding = base64.RawURLEncoding.Strict()

// Keys are the keys of handoffs, and of nothing else: the first is active and signs, the others are in grace and only
// verify. The zero value signs and verifies nothing.
type Keys struct{ ring keyring.Ring }

// ParseKeys reads "hmac-2026-11:base64,hmac-2026-05:base64", the active key first. A key that is to become active is
// put second a deployment before, so that nobody meets its tokens without it.
func ParseKeys(s string) (Keys, error) {
	ring, err := keyring.Parse(s)
	if err != nil {
		return Keys{}, fmt.Errorf("handoff: %w", err)
	}
	for _, key := range ring {
		if !validKeyID(key.ID) {
			return Keys{}, fmt.Errorf("handoff: key %q is not named hmac-YYYY-MM", key.ID)
		}
	}
	return Keys{ring}, nil
}

// UnmarshalText lets a configuration hold Keys.
func (k *Keys) UnmarshalText(text []byte) (err error) {
	*k, err = ParseKeys(string(text))
	return err
}

// Sign completes h, whose ExpiresAt and KeyID it sets, and returns its token:
// base64url(canonical string) "." base64url(HMAC-SHA-256 of the canonical string).
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

func signText(text []byte, key keyring.Key) string {
	return encoding.EncodeToString(text) + "." + encoding.EncodeToString(key.HMAC(text))
}

// VerifySignature returns what a token says, whether or not its time is over; ErrSignature when we cannot have signed it. Nothing
// of the token but the name of its key is looked at before its MAC is known to be right.
func (k Keys) VerifySignature(token string) (Handoff, error) {
	text, mac, ok := splitToken(token)
	if !ok {
		return Handoff{}, fmt.Errorf("%w: not a token", ErrSignature)
	}
	key, known := k.ring.Find(text[strings.LastIndexByte(text, '\n')+1:])
	if !known {
		return Handoff{}, fmt.Errorf("%w: key not known", ErrSignature)
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

// Verify is Open for a token that is to be used now: ErrExpired when its half hour is over. It says nothing about
// whether the token was used before; only the ledger of its issuer knows.
func (k Keys) Verify(token string, now time.Time) (Handoff, error) {
	h, err := k.VerifySignature(token)
	switch {
	case err != nil:
		return Handoff{}, err
	case h.MintedAt.After(now.Add(maxClockSkew)):
		return Handoff{}, fmt.Errorf("%w: from the future", ErrSignature)
	case !now.Before(h.ExpiresAt):
		return Handoff{}, ErrExpired
	}
	return h, nil
}

// splitToken takes a token apart. One text has one token: what does not encode to the same characters again is refused.
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
