package challenge

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
	prefix  = "pow1."
	purpose = "challenge.pow.v1"

	life     = time.Hour   // of a puzzle and its solution
	drift    = time.Minute // between the clocks of our instances
	macBytes = 16

	maxSolution = 128 // characters; a real one has about 65
	maxNumber   = 16  // digits: what a double, the only number of a browser, counts to exactly
)

// Difficulties a puzzle can have, in leading zero bits. 24 are minutes of a slow phone.
const (
	MinDifficulty = 1
	MaxDifficulty = 24
)

// Why a solution is not taken. None repeats what was sent.
var (
	errMalformed = errors.New("proof-of-work: not a solution")
	errForeign   = errors.New("proof-of-work: not of this client")
	errExpired   = errors.New("proof-of-work: expired")
	errUnsolved  = errors.New("proof-of-work: not solved")
)

// puzzles makes and checks them, without a store.
type puzzles struct {
	ring keyring.Ring
	now  func() time.Time
}

func (p puzzles) offer(c Client, difficulty int) Offer {
	difficulty = min(max(difficulty, MinDifficulty), MaxDifficulty)
	expires := p.now().Add(life).Truncate(time.Minute).UTC()
	key := p.ring.Active()
	text := prefix + strconv.Itoa(difficulty) + "." + strconv.FormatInt(expires.Unix(), 10) + "." + key.ID
	return Offer{
		Kind: Work, Challenge: text + "." + mac(key, text, c), Difficulty: difficulty, Algorithm: "SHA-256",
		ExpiresAt: expires.Format("2006-01-02T15:04:05.000Z"),
	}
}

func mac(key keyring.Key, text string, c Client) string {
	sum := key.Sum(purpose, []byte(text), []byte(c.Fingerprint), []byte(c.Address))
	return base64.RawURLEncoding.EncodeToString(sum[:macBytes])
}

// check says until when a solution is good for that client. Nothing in it but the name of its key is looked at before
// its HMAC is known to be right; that is compared as text, so one puzzle has one spelling.
func (p puzzles) check(token string, c Client) (expires time.Time, err error) {
	part := strings.Split(token, ".")
	if len(token) > maxSolution || len(part) != 6 || !isNumber(part[5]) {
		return time.Time{}, errMalformed
	}
	key, known := p.ring.Find(part[3])
	text := strings.Join(part[:4], ".")
	if !known || !hmac.Equal([]byte(part[4]), []byte(mac(key, text, c))) {
		return time.Time{}, errForeign
	}
	difficulty, err1 := strconv.Atoi(part[1])
	seconds, err2 := strconv.ParseInt(part[2], 10, 64)
	expires, now := time.Unix(seconds, 0), p.now()
	switch {
	case part[0]+"." != prefix || err1 != nil || err2 != nil: // unreachable unless our key signed something else
		return time.Time{}, errMalformed
	case !now.Before(expires), expires.After(now.Add(life + drift)):
		return time.Time{}, errExpired
	case zeros(token) < difficulty:
		return time.Time{}, errUnsolved
	}
	return expires, nil
}

// isNumber is strict, so that nobody can write one solution in many ways.
func isNumber(s string) bool {
	if s == "" || len(s) > maxNumber || s[0] == '0' && s != "0" {
		return false
	}
	return strings.Trim(s, "0123456789") == ""
}

// zeros counts the zero bits that the SHA-256 of s begins with, up to 64.
func zeros(s string) int {
	sum := sha256.Sum256([]byte(s))
	return bits.LeadingZeros64(binary.BigEndian.Uint64(sum[:8]))
}

// Solve is what a client does with a puzzle: it returns the token to send. Nothing deployed needs it; tools and tests do.
func Solve(challenge string, difficulty int) (token string) {
	for n := 0; ; n++ {
		if token = challenge + "." + strconv.Itoa(n); zeros(token) >= difficulty {
			return token
		}
	}
}
