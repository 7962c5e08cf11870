// Package oidctest is an issuer of ID tokens in place of Google: it signs tokens and publishes the
// keys to verify them. Tests and the development server import it; functions never do.
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

// IssuerURL is the iss claim of the tokens.
const IssuerURL = "https://issuer.invalid"

// Issuer signs tokens with a single RSA key, and is an http.Handler for the key set. Safe for
// concurrent use.
type Issuer struct {
	keyID string
	key   *rsa.PrivateKey
}

// New returns an Issuer with a new key of 2048 bits and the given key id. Generating the key takes
// about a tenth of a second.
func New(id string) (*Issuer, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, fmt.Errorf("oidctest: generate a key: %w", err)
	}
	return &Issuer{id, key}, nil
}

// Token returns an ID token of account for audience, valid for an hour from now.
func (i *Issuer) Token(audience, account string, now time.Time) string {
	return i.Sign(map[string]any{"alg": "RS256", "typ": "JWT", "kid": i.keyID}, map[string]any{
		"iss": IssuerURL, "aud": audience, "sub": account, "email": account, "email_verified": true,
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	})
}

// Sign returns a token with any header and claims. The signature is always RS256.
func (i *Issuer) Sign(header, claims map[string]any) string {
	signed := encodePart(header) + "." + encodePart(claims)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(nil, i.key, crypto.SHA256, digest[:])
	if err != nil {
		panic(err) // unreachable: the key is large enough for the digest
	}
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// KeySet returns the JWK set with the public key.
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

// encodePart returns a value as JSON in base64url, or panics if the value has no JSON form.
func encodePart(v map[string]any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // the caller passed a claim without a JSON form
	}
	return base64.RawURLEncoding.EncodeToString(text)
}
