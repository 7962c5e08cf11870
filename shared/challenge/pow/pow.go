// Package pow owns the puzzle of the proof of work: how it is written, signed, solved and checked. It keeps nothing and
// knows no request.
package pow

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math/bits"
	"strconv"
	"strings"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
)

// A puzzle is the text
//
//	pow1.<difficulty>.<expires, Unix s>.<key>.<base64url of the first 16 bytes of its HMAC>
//
// and its solution the same text with "." and a number behind it, such that the SHA-256 of the whole begins with that
// many zero bits. The HMAC is over all before it and over the client, who is not in the text. Nothing is drawn by lot:
// the calls of one page get one puzzle, and one solution does for all of them.
const (
	// Prefix is what every solution begins with, and no reCAPTCHA token.
	Prefix  = "pow1."
	purpose = "challenge.pow.v1"

	puzzleTTL    = time.Hour   // of a puzzle and its solution
	maxClockSkew = time.Minute // between the clocks of our instances
	macBytes     = 16

	maxTokenLength = 128 // characters; a real one has about 50
	maxNonceDigits = 16  // digits: what a double, the only number of a browser, counts to exactly
)

// Difficulties a puzzle can have, in leading zero bits. 24 are minutes of a slow phone.
const (
	MinDifficulty = 1
	MaxDifficulty = 24
)

// Why a solution is not taken. None repeats what was sent.
var (
	errMalformed   = errors.New("not a solution")
	errWrongClient = errors.New("not of this client")
	errExpired     = errors.New("expired")
	errUnsolved    = errors.New("not solved")
)

// Client is whom a puzzle is for: nobody else can use its solution. Both are hashes, as session.Visit has them.
type Client struct {
	Fingerprint string // Visit.Fingerprint
	Address     string // Visit.IPHash, of the group of addresses that count as one
}

// Issuer makes and checks them. Safe for concurrent use.
type Issuer struct {
	Ring keyring.Ring     // signs, under a label of its own
	Now  func() time.Time // the clock
}

// Puzzle is one to solve.
type Puzzle struct {
	Text       string
	Difficulty int       // leading zero bits
	Expires    time.Time // so does its solution
}

// Issue is the puzzle of that client, the same for a minute. A difficulty that no puzzle can have becomes the nearest one.
func (p Issuer) Issue(c Client, difficulty int) Puzzle {
	difficulty = min(max(difficulty, MinDifficulty), MaxDifficulty)
	expires := p.Now().Add(puzzleTTL).Truncate(time.Minute).UTC()
	key := p.Ring.Active()
	text := Prefix + strconv.Itoa(difficulty) + "." + strconv.FormatInt(expires.Unix(), 10) + "." + key.ID
	return Puzzle{text + "." + mac(key, text, c), difficulty, expires}
}

func mac(key keyring.Key, text string, c Client) string {
	sum := key.Sum(purpose, []byte(text), []byte(c.Fingerprint), []byte(c.Address))
	return base64.RawURLEncoding.EncodeToString(sum[:macBytes])
}

// Verify says until when a solution is good for that client. Nothing in it but the name of its key is looked at before
// its HMAC is known to be right; that is compared as text, so one puzzle has one spelling.
func (p Issuer) Verify(token string, c Client) (expires time.Time, err error) {
	part := strings.Split(token, ".")
	if len(token) > maxTokenLength || len(part) != 6 || !validNonce(part[5]) {
		return time.Time{}, errMalformed
	}
	key, known := p.Ring.Find(part[3])
	text := strings.Join(part[:4], ".")
	if !known || !hmac.Equal([]byte(part[4]), []byte(mac(key, text, c))) {
		return time.Time{}, errWrongClient
	}
	difficulty, err1 := strconv.Atoi(part[1])
	seconds, err2 := strconv.ParseInt(part[2], 10, 64)
	expires, now := time.Unix(seconds, 0), p.Now()
	switch {
	case part[0]+"." != Prefix || err1 != nil || err2 != nil: // unreachable unless our key signed something else
		return time.Time{}, errMalformed
	case !now.Before(expires), expires.After(now.Add(puzzleTTL + maxClockSkew)):
		return time.Time{}, errExpired
	case leadingZeros(token) < difficulty:
		return time.Time{}, errUnsolved
	}
	return expires, nil
}

// validNonce is strict, so that nobody can write one solution in many ways.
func validNonce(s string) bool {
	if s == "" || len(s) > maxNonceDigits || s[0] == '0' && s != "0" {
		return false
	}
	return strings.Trim(s, "0123456789") == ""
}

// leadingZeros counts the zero bits that the SHA-256 of s begins with, up to 64.
func leadingZeros(s string) int {
	sum := sha256.Sum256([]byte(s))
	return bits.LeadingZeros64(binary.BigEndian.Uint64(sum[:8]))
}

// Solve is what a client does with a puzzle: it returns the token to send. Nothing deployed needs it; tools and tests do.
func Solve(text string, difficulty int) (token string) {
	for n := 0; ; n++ {
		if token = text + "." + strconv.Itoa(n); leadingZeros(token) >= difficulty {
			return token
		}
	}
}
