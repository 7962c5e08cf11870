// Package keyring owns secrets that rotate: a list of named keys, newest first. The first signs, all
// verify. It never says what is signed; each purpose binds its own label into what it signs.
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

// Key is one secret with the name it is known by in logs and tokens.
type Key struct {
	ID      string
	macPool *sync.Pool // of *mac, which have the secret
}

// mac computes HMACs under one secret, one after the other: making one costs as much as what most of them sum up.
type mac struct {
	hash.Hash
	buf []byte // room for what is summed
}

func newKey(id string, secret []byte) Key {
	return Key{id, &sync.Pool{New: func() any { return &mac{Hash: hmac.New(sha256.New, secret)} }}}
}

// Ring is a set of keys, newest first. Make one with Parse.
type Ring []Key

// ErrEmpty says that a ring was given without a key.
var ErrEmpty = errors.New("keyring: no key")

const minSecretBytes = 16 // bytes: below this a MAC of 56 bits would be the stronger part

// Parse reads "id:base64,id:base64", newest first, as Secret Manager holds it. Ids are letters, digits
// and hyphens; secrets are at least 16 bytes in standard base64. Errors name the position, never the secret.
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

// UnmarshalText lets a configuration hold a Ring.
func (r *Ring) UnmarshalText(text []byte) (err error) {
	*r, err = Parse(string(text))
	return err
}

// Active is the key that signs. It panics when the ring is empty, which one made with Parse never is.
func (r Ring) Active() Key { return r[0] }

// Find returns the key of that name; false when the ring has none.
func (r Ring) Find(id string) (Key, bool) {
	for _, k := range r {
		if k.ID == id {
			return k, true
		}
	}
	return Key{}, false
}

// Sum is HMAC-SHA-256 over the purpose and the parts, each behind its length so that no byte can move
// from one to the next: 32 bytes.
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

// HMAC is plain HMAC-SHA-256 of exactly these bytes, for a format that others check in a language of their own: 32
// bytes. It binds no purpose, so a ring used this way is used for nothing else.
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

func validID(id string) bool {
	for _, c := range id {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return id != "" && len(id) <= 32
}
