// Package pow issues and verifies proof-of-work puzzles. The package is stateless: a puzzle carries
// a signature, and neither requests nor stores are read.
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
//	pow1.<difficulty>.<expires, Unix s>.<key id>.<base64url of the first 16 bytes of the HMAC>
//
// A solution is the puzzle, ".", and a decimal nonce for which the SHA-256 of the whole text begins
// with <difficulty> zero bits. The HMAC covers the preceding text and the client; the text does not
// name the client. A puzzle has no random part: all calls of a page get the same puzzle, and one
// solution is enough for all calls.
const (
	// Prefix begins every solution and no reCAPTCHA token.
	Prefix  = "pow1."
	purpose = "challenge.pow.v1"

	puzzleTTL    = time.Hour   // of a puzzle and its solution
	maxClockSkew = time.Minute // between the clocks of two instances
	macBytes     = 16

	maxTokenLength = 128 // characters; a real solution has about 50
	maxNonceDigits = 16  // browsers count in doubles, which are exact up to 16 digits
)

// The range of difficulties, in leading zero bits. 24 bits take a slow phone minutes.
const (
	MinDifficulty = 1
	MaxDifficulty = 24
)

// Reasons to reject a solution. The texts go to the log and never repeat the token.
var (
	errMalformed   = errors.New("not a solution")
	errWrongClient = errors.New("signature does not match this client")
	errExpired     = errors.New("expired")
	errUnsolved    = errors.New("not solved")
)

// Client identifies the client of a puzzle by two hashes. Another client cannot use the solution.
type Client struct {
	Fingerprint string // session.Client.Fingerprint
	Address     string // session.Client.IPHash, the hash of the address group
}

// Issuer issues and verifies puzzles. Safe for concurrent use.
type Issuer struct {
	Ring keyring.Ring // signs under the purpose label of this package; must not be empty
	Now  func() time.Time
}

// Puzzle is a puzzle for one client.
type Puzzle struct {
	Text       string
	Difficulty int       // leading zero bits
	Expires    time.Time // expiry of the puzzle and of its solution
}

// Issue returns the puzzle of a client. A puzzle expires after an hour, rounded down to a whole
// minute: all calls within a minute with the same client, difficulty and key return the same
// puzzle. A difficulty outside MinDifficulty … MaxDifficulty becomes the nearest bound. Issue costs
// one HMAC, does no I/O and takes no lock. It returns no error; an empty Ring or a nil Now panics.
func (p Issuer) Issue(c Client, difficulty int) Puzzle {
	difficulty = min(max(difficulty, MinDifficulty), MaxDifficulty)
	expires := p.Now().Add(puzzleTTL).Truncate(time.Minute).UTC()
	key := p.Ring.Active()
	text := Prefix + strconv.Itoa(difficulty) + "." + strconv.FormatInt(expires.Unix(), 10) + "." + key.ID
	return Puzzle{text + "." + mac(key, text, c), difficulty, expires}
}

// mac returns the signature of a puzzle's text for one client.
func mac(key keyring.Key, text string, c Client) string {
	sum := key.Sum(purpose, []byte(text), []byte(c.Fingerprint), []byte(c.Address))
	return base64.RawURLEncoding.EncodeToString(sum[:macBytes])
}

// Verify returns the expiry of a solution, or the zero time and an error if the token is malformed,
// not signed for this client by a key of Ring, expired or unsolved. An empty Ring rejects every
// token. The cost is at most an HMAC and a SHA-256; no I/O, no lock, no store. A client may use a
// solution any number of times until the expiry, while its key is in Ring. The expiry may lie a
// minute more than an hour ahead, for the clocks of two instances. Before the HMAC is verified,
// Verify reads only the key id and the form of the nonce. The HMAC is compared as text: a puzzle
// has exactly one spelling. No error repeats the token.
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
	case part[0]+"." != Prefix || err1 != nil || err2 != nil: // unreachable unless the key signed another format
		return time.Time{}, errMalformed
	case !now.Before(expires), expires.After(now.Add(puzzleTTL + maxClockSkew)):
		return time.Time{}, errExpired
	case leadingZeros(token) < difficulty:
		return time.Time{}, errUnsolved
	}
	return expires, nil
}

// validNonce accepts a decimal number in one spelling only: each solution has exactly one text.
func validNonce(s string) bool {
	if s == "" || len(s) > maxNonceDigits || s[0] == '0' && s != "0" {
		return false
	}
	return strings.Trim(s, "0123456789") == ""
}

// leadingZeros returns the number of leading zero bits in the SHA-256 of s, at most 64.
func leadingZeros(s string) int {
	sum := sha256.Sum256([]byte(s))
	return bits.LeadingZeros64(binary.BigEndian.Uint64(sum[:8]))
}

// Solve returns the solution of a puzzle with the smallest nonce, as a client finds it. The cost is
// about 2^difficulty hashes, on the CPU of the caller, without a context to stop it: above 64 Solve
// never returns. Solve does not check text. Only tools and tests call Solve.
func Solve(text string, difficulty int) (token string) {
	for n := 0; ; n++ {
		if token = text + "." + strconv.Itoa(n); leadingZeros(token) >= difficulty {
			return token
		}
	}
}
