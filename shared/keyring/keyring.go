// Package keyring holds rotating HMAC secrets: a list of named keys, newest first. The first key
// signs; every key verifies. The package keeps no state beyond the keys and does not define what is
// signed: each caller binds its own purpose label into a MAC.
package keyring

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"strings"
	"sync"
)

// Key is one secret and its name in logs and tokens. It is safe for concurrent use. The zero Key
// has no secret: Sum and HMAC panic.
type Key struct {
	ID      string
	macPool *sync.Pool // of *mac, each keyed with the secret
}

// mac is a reusable HMAC state under one secret. A new state costs as much time as most MACs take,
// so Key pools the states.
type mac struct {
	hash.Hash
	buf []byte // reused for the message
}

func newKey(id string, secret []byte) Key {
	return Key{id, &sync.Pool{New: func() any { return &mac{Hash: hmac.New(sha256.New, secret)} }}}
}

// Ring is a list of keys, newest first, as Parse returns it. It is safe for concurrent use.
type Ring []Key

// ErrEmpty reports a ring without a key.
var ErrEmpty = errors.New("keyring: no key")

const minSecretBytes = 16 // a shorter secret would be easier to guess than a truncated MAC of 56 bits

// Parse reads "id:base64,id:base64", newest first, the form of the value in Secret Manager; spaces
// around a key are ignored. An id has 1 to 32 letters, digits and hyphens, and occurs once; a
// secret has at least 16 bytes in standard base64. Parse returns a nil Ring with an error: ErrEmpty
// for an empty string, otherwise an error with the position or the id of the key, never the secret.
// CPU only.
func Parse(s string) (Ring, error) {
	var ring Ring
	seen := map[string]bool{}
	for i, part := range strings.Split(s, ",") {
		id, encoded, ok := strings.Cut(strings.TrimSpace(part), ":")
		if !ok || !validID(id) {
			if s == "" {
				return nil, ErrEmpty
			}
			return nil, fmt.Errorf("keyring: key %d is not \"id:base64\"", i+1)
		}
		secret, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || len(secret) < minSecretBytes {
			return nil, fmt.Errorf("keyring: key %q is not base64 of at least %d bytes", id, minSecretBytes)
		}
		if seen[id] {
			return nil, fmt.Errorf("keyring: key %q appears twice", id)
		}
		seen[id] = true
		ring = append(ring, newKey(id, secret))
	}
	return ring, nil
}

// UnmarshalText implements encoding.TextUnmarshaler by Parse, for configuration structs. After an
// error *r is nil. Not safe for use concurrent with other methods.
func (r *Ring) UnmarshalText(text []byte) (err error) {
	*r, err = Parse(string(text))
	return err
}

// Active returns the signing key, the first one. It panics if the ring is empty; a ring of Parse
// without an error never is.
func (r Ring) Active() Key { return r[0] }

// Find returns the key with an id, or the zero Key and false if the ring has no such key. The ids
// are compared in order, not in constant time.
func (r Ring) Find(id string) (Key, bool) {
	for _, k := range r {
		if k.ID == id {
			return k, true
		}
	}
	return Key{}, false
}

// Sum returns the HMAC-SHA-256, 32 bytes, of the purpose and the parts. A length precedes each
// part, so moving a byte from one part to the next changes the MAC. CPU only, about the time of
// hashing the parts, which are copied; it takes no mutex and never fails, but panics for the zero
// Key.
func (k Key) Sum(purpose string, parts ...[]byte) []byte {
	m := k.macPool.Get().(*mac)
	defer k.macPool.Put(m)
	m.buf = binary.BigEndian.AppendUint32(m.buf[:0], uint32(len(purpose)))
	m.buf = append(m.buf, purpose...)
	for _, p := range parts {
		m.buf = binary.BigEndian.AppendUint32(m.buf, uint32(len(p)))
		m.buf = append(m.buf, p...)
	}
	return m.sum(m.buf)
}

// HMAC returns the plain HMAC-SHA-256 of a message, 32 bytes, for formats that receivers verify
// with their own code. The MAC binds no purpose, so a ring used with HMAC must have no other use.
// CPU only; it never fails, but panics for the zero Key.
func (k Key) HMAC(message []byte) []byte {
	m := k.macPool.Get().(*mac)
	defer k.macPool.Put(m)
	return m.sum(message)
}

func (m *mac) sum(text []byte) []byte {
	m.Reset()
	m.Write(text)
	return m.Sum(make([]byte, 0, sha256.Size))
}

// validID reports whether id has 1 to 32 ASCII letters, digits and hyphens.
func validID(id string) bool {
	for _, c := range id {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return id != "" && len(id) <= 32
}
