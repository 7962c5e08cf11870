// Package serviceauth verifies the Google ID tokens of service accounts that call internal
// endpoints: signature, issuer, audience, times and account. It fetches the issuer's public keys
// now and then; it never sends a token to another service. Decision 43 tells why no library does
// this.
package serviceauth

import (
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
)

// Google's values for Config.
const (
	GoogleIssuer  = "https://accounts.google.com"
	GoogleKeysURL = "https://www.googleapis.com/oauth2/v3/certs"
)

// Config lists the accepted tokens. Every field is required.
type Config struct {
	Issuer    string   // the iss claim
	KeySource string   // the issuer's JWK set: an https URL (http for this machine), or the path of a file
	Audience  string   // the aud claim: this service's name, so that tokens for other services are rejected
	Accounts  []string // allowed email claims: service accounts
}

// Verifier verifies ID tokens. Safe for concurrent use.
type Verifier struct {
	issuer, audience string
	accounts         []string
	keys             *keySet
	now              func() time.Time
}

// ErrNotAllowed is in the chain of every error of Verify. The full error tells the reason, for the
// log; of the token it repeats the account only.
var ErrNotAllowed = errors.New("serviceauth: not allowed")

// New returns a Verifier, or an error if a field of Config is empty, an account is "", or KeySource
// is a URL of another kind than Config allows. It fetches no keys and opens no file yet: a wrong
// KeySource fails each Verify. now must not be nil.
func New(c Config, now func() time.Time) (*Verifier, error) {
	if c.Issuer == "" || c.Audience == "" || len(c.Accounts) == 0 || slices.Contains(c.Accounts, "") {
		return nil, errors.New("serviceauth: issuer, audience and accounts are all required")
	}
	keys, err := newKeySet(c.KeySource, now)
	if err != nil {
		return nil, err
	}
	return &Verifier{c.Issuer, c.Audience, c.Accounts, keys, now}, nil
}

const (
	maxClockSkew     = 30 * time.Second // tolerance for the difference of the issuer's clock and ours
	maxTokenBytes    = 8 << 10
	removedSignature = "SIGNATURE_REMOVED_BY_GOOGLE" // in place of a signature verified by Cloud Run
)

// encoding rejects unused bits that are not zero, so that a token has a single form. It would skip
// line ends, but a header has none.
var encoding = base64.RawURLEncoding.Strict()

type header struct {
	Alg  string   `json:"alg"`
	Kid  string   `json:"kid"`
	Crit []string `json:"crit"`
}

type claims struct {
	Issuer   string  `json:"iss"`
	Audience string  `json:"aud"`
	Email    string  `json:"email"`
	Verified bool    `json:"email_verified"`
	Expires  float64 `json:"exp"` // Unix seconds
	Issued   float64 `json:"iat"`
}

// Verify returns the account of a request's bearer token, or "" and an error with ErrNotAllowed:
// for no or several Authorization headers, a malformed token or a token over 8 KiB, another
// algorithm than RS256, a wrong signature, issuer, audience or account, a time more than 30 s off,
// and also if the keys cannot be fetched.
//
// With known and fresh keys Verify needs no network: a mutex of the Verifier for a moment and an
// RSA verification. An unknown key id or expired keys start a fetch of the keys, within 1 s and at
// most every 10 s. All other calls wait for a running fetch, even if their key is known or their
// own context has ended; a cancelled request does not end the fetch. In the 10 s after a fetch an
// unknown key id is rejected at once.
//
// Keys expire as the issuer says (Cache-Control, from 1 min to 24 h, 1 h by default). If the issuer
// cannot be reached, known keys stay valid until 24 h after their fetch, but one call in 10 s waits
// up to 1 s for the failing fetch; after the 24 h, or without keys, every token is rejected.
func (v *Verifier) Verify(r *http.Request) (account string, err error) {
	sent := r.Header.Values("Authorization")
	if len(sent) != 1 {
		return "", fmt.Errorf("%w: %d Authorization headers", ErrNotAllowed, len(sent))
	}
	scheme, token, _ := strings.Cut(sent[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", fmt.Errorf("%w: not a bearer token", ErrNotAllowed)
	}
	verified, err := v.verifyToken(r.Context(), token)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotAllowed, err)
	}
	return verified.Email, nil
}

func (v *Verifier) verifyToken(ctx context.Context, token string) (got claims, err error) {
	signed, signature, ok := cutLast(token)
	if signature == removedSignature {
		return got, errors.New("Cloud Run removed the signature: send the token for Cloud Run in X-Serverless-Authorization")
	}
	head, body, ok2 := strings.Cut(signed, ".")
	if !ok || !ok2 || len(token) > maxTokenBytes {
		return got, errors.New("not a token")
	}
	var h header
	if err := decodePart(head, &h); err != nil {
		return got, err
	}
	// The token must not choose the algorithm: with HS256 the public key would be the secret.
	if h.Alg != "RS256" || h.Kid == "" || len(h.Crit) > 0 {
		return got, errors.New("not signed with RS256 and a named key")
	}
	key, err := v.keys.find(ctx, h.Kid)
	if err != nil {
		return got, err
	}
	mac, err := encoding.DecodeString(signature)
	if err != nil {
		return got, errors.New("signature is not base64url")
	}
	digest := sha256.Sum256([]byte(signed))
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], mac); err != nil {
		return got, errors.New("signature is not the issuer's")
	}
	if err := decodePart(body, &got); err != nil {
		return got, err
	}
	return got, v.checkClaims(got)
}

// checkClaims checks claims whose signature is valid.
func (v *Verifier) checkClaims(got claims) error {
	now := v.now()
	issued, expires := unixTime(got.Issued), unixTime(got.Expires)
	switch {
	case got.Issuer != v.issuer && "https://"+got.Issuer != v.issuer: // Google uses both forms
		return errors.New("another issuer's token")
	case got.Audience != v.audience:
		return errors.New("a token for another service")
	case !now.Before(expires.Add(maxClockSkew)):
		return errors.New("the token has expired")
	case issued.After(now.Add(maxClockSkew)):
		return errors.New("the token is from the future")
	case !got.Verified || !slices.Contains(v.accounts, got.Email):
		return fmt.Errorf("account %.100q is not on the list", got.Email)
	}
	return nil
}

func unixTime(seconds float64) time.Time {
	const maxSeconds = 1 << 40 // seconds; a larger time.Time would overflow
	return time.Unix(int64(min(max(seconds, 0), maxSeconds)), 0)
}

func cutLast(s string) (before, after string, ok bool) {
	at := strings.LastIndexByte(s, '.')
	if at < 0 {
		return "", "", false
	}
	return s[:at], s[at+1:], true
}

// decodePart decodes a part of a token: base64url of JSON without duplicate names. It ignores
// unknown members.
func decodePart(part string, into any) error {
	text, err := encoding.DecodeString(part)
	if err != nil {
		return errors.New("not base64url")
	}
	if err := json.Unmarshal(text, into); err != nil {
		return errors.New("not the JSON of a token")
	}
	return nil
}
