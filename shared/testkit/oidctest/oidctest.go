// Package issuer stands in for Google where there is none: it signs ID tokens and publishes the keys they are checked
// with. Tests and the local system import it; no function does.
package oidctest

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"math/big"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
)

// IssuerURL is the iss claim of its tokens.
const IssuerURL = "https://issuer.invalid"

// Issuer has one key. Safe for concurrent use. It is an http.Handler that answers with its key set.
type Issuer struct {
	keyID string
	key   *rsa.PrivateKey
}

// New makes an Issuer with a key of that id.
func New(id string) (*Issuer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("issuer: make a key: %w", err)
	}
	return &Issuer{id, key}, nil
}

// Token is an ID token of account for audience, good for an hour from now.
func (i *Issuer) Token(audience, account string, now time.Time) string {
	return i.Sign(map[string]any{"alg": "RS256", "typ": "JWT", "kid": i.keyID}, map[string]any{
		"iss": IssuerURL, "aud": audience, "sub": account, "email": account, "email_verified": true,
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	})
}

// Sign is a token of any header and claims, signed with RS256 whatever the header says.
func (i *Issuer) Sign(header, claims map[string]any) string {
	signed := encodePart(header) + "." + encodePart(claims)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(nil, i.key, crypto.SHA256, digest[:])
	if err != nil {
		panic(err) // unreachable: the key is large enough for the digest
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// KeySet is the JWK set with its public key.
func (i *Issuer) KeySet() []byte {
	set, err := json.Marshal(map[string]any{"keys": []any{map[string]any{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": i.keyID,
		"n": base64.RawURLEncoding.EncodeToString(i.key.N.Bytes()),
		"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(i.key.E)).Bytes()),
	}}})
	if err != nil {
		panic(err) // unreachable: strings
	}
	return set
}

// ServeHTTP answers with the key set.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "public, max-age=3600")
	_, _ = w.Write(i.KeySet())
}

func encodePart(v map[string]any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // a claim that is no JSON: the caller's mistake
	}
	return base64.RawURLEncoding.EncodeToString(text)
}
