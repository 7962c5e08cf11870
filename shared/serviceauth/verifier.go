// Package caller owns who may call a private door: the bearer of a Google ID token whose signature, issuer, audience,
// time and account are all right. It never asks anybody about a token, only now and then for the issuer's public keys.
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

// Google's, for Config.
const (
	GoogleIssuer  = "https://accounts.google.com"
	GoogleKeysURL = "https://www.googleapis.com/oauth2/v3/certs"
)

// Config says whose tokens open the door. Every part is required.
type Config struct {
	Issuer    string   // the iss claim
	KeySource string   // its public keys, a JWK set: an https URL (http on this machine), or the path of a file
	Audience  string   // the aud claim: this service's own name, so that a token for another service opens nothing here
	Accounts  []string // the email claims allowed: service accounts
}

// Verifier knows who may call. Safe for concurrent use.
type Verifier struct {
	issuer, audience string
	accounts         []string
	keys             *keySet
	now              func() time.Time
}

// ErrNotAllowed is the answer to everybody else. What is wrapped around it says why, for the log; it has nothing of the
// token but its account.
var ErrNotAllowed = errors.New("caller: not allowed")

// New makes a Check. It asks for no keys yet.
func New(c Config, now func() time.Time) (*Verifier, error) {
	if c.Issuer == "" || c.Audience == "" || len(c.Accounts) == 0 || slices.Contains(c.Accounts, "") {
		return nil, errors.New("caller: issuer, audience and accounts are all required")
	}
	keys, err := newKeySet(c.KeySource, now)
	if err != nil {
		return nil, err
	}
	return &Verifier{c.Issuer, c.Audience, c.Accounts, keys, now}, nil
}

const (
	maxClockSkew     = 30 * time.Second // between the issuer's clock and ours
	maxTokenBytes    = 8 << 10
	removedSignature = "SIGNATURE_REMOVED_BY_GOOGLE" // in the place of a signature that Cloud Run has checked
)

// encoding refuses odd bits; line ends, which it would skip, cannot be in a header.
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

// Verify returns the account a request comes from, or ErrNotAllowed. It waits at most a second, and only while the
// issuer's keys are not known.
func (c *Verifier) Verify(r *http.Request) (account string, err error) {
	sent := r.Header.Values("Authorization")
	if len(sent) != 1 {
		return "", fmt.Errorf("%w: %d Authorization headers", ErrNotAllowed, len(sent))
	}
	scheme, token, _ := strings.Cut(sent[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", fmt.Errorf("%w: not a bearer token", ErrNotAllowed)
	}
	said, err := c.verifyToken(r.Context(), token)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotAllowed, err)
	}
	return said.Email, nil
}

func (c *Verifier) verifyToken(ctx context.Context, token string) (said claims, err error) {
	signed, signature, ok := cutLast(token)
	if signature == removedSignature {
		return said, errors.New("the platform took the signature off: send it its token in X-Serverless-Authorization")
	}
	head, body, ok2 := strings.Cut(signed, ".")
	if !ok || !ok2 || len(token) > maxTokenBytes {
		return said, errors.New("not a token")
	}
	var h header
	if err := decodePart(head, &h); err != nil {
		return said, err
	}
	// The algorithm is ours to choose, not the token's: with another one a public key would be a secret.
	if h.Alg != "RS256" || h.Kid == "" || len(h.Crit) > 0 {
		return said, errors.New("not signed with RS256 and a named key")
	}
	key, err := c.keys.find(ctx, h.Kid)
	if err != nil {
		return said, err
	}
	mac, err := encoding.DecodeString(signature)
	if err != nil {
		return said, errors.New("signature is not base64url")
	}
	digest := sha256.Sum256([]byte(signed))
	if err := rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], mac); err != nil {
		return said, errors.New("signature is not the issuer's")
	}
	if err := decodePart(body, &said); err != nil {
		return said, err
	}
	return said, c.checkClaims(said)
}

// checkClaims decides about claims that the issuer has signed.
func (c *Verifier) checkClaims(said claims) error {
	now := c.now()
	issued, expires := unixTime(said.Issued), unixTime(said.Expires)
	switch {
	case said.Issuer != c.issuer && "https://"+said.Issuer != c.issuer: // Google writes it both ways
		return errors.New("another issuer's token")
	case said.Audience != c.audience:
		return errors.New("a token for another service")
	case !now.Before(expires.Add(maxClockSkew)):
		return errors.New("the token has expired")
	case issued.After(now.Add(maxClockSkew)):
		return errors.New("the token is from the future")
	case !said.Verified || !slices.Contains(c.accounts, said.Email):
		return fmt.Errorf("account %.100q is not on the list", said.Email)
	}
	return nil
}

func unixTime(seconds float64) time.Time {
	const furthest = 1 << 40 // seconds; beyond it a time.Time would wrap around
	return time.Unix(int64(min(max(seconds, 0), furthest)), 0)
}

func cutLast(s string) (before, after string, ok bool) {
	at := strings.LastIndexByte(s, '.')
	if at < 0 {
		return "", "", false
	}
	return s[:at], s[at+1:], true
}

// decodePart reads one part of a token: JSON without a name twice. Members that we do not ask for are ignored.
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
