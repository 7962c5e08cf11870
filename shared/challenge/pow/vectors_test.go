package pow

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/vectortest"
)

// vectors are the published test vectors for solvers and verifiers in any language.
type vectors struct {
	About  []string       `json:"about"`
	Key    vectorKey      `json:"key"`
	Solve  []solveVector  `json:"solve"`
	Refuse []rejectVector `json:"refuse"`
}

type vectorKey struct {
	ID     string `json:"id"`
	Secret string `json:"secretBase64"`
}

type solveVector struct {
	Challenge   string    `json:"challenge"`
	Difficulty  int       `json:"difficulty"`
	Token       string    `json:"token"` // solution with the smallest nonce
	SHA256      string    `json:"sha256"`
	Fingerprint string    `json:"fingerprint"`
	Address     string    `json:"address"`
	Now         time.Time `json:"now"`
}

type rejectVector struct {
	Name        string    `json:"name"`
	Token       string    `json:"token"`
	Fingerprint string    `json:"fingerprint"`
	Address     string    `json:"address"`
	Now         time.Time `json:"now"`
}

func buildVectors(t *testing.T) vectors {
	t.Helper()
	v := vectors{
		About: []string{
			"Test vectors of the proof of work. The key is for tests only.",
			"A client finds `token` for `challenge`: the challenge, '.', and the smallest number from 0 for which the SHA-256 of the whole text begins with `difficulty` zero bits. Any other number with this property is a solution too.",
			"challenge = 'pow1.' difficulty '.' expires '.' key id '.' base64url, without padding, of the first 16 bytes of the HMAC-SHA-256 of: 'challenge.pow.v1', the text before the last '.', fingerprint and address; the length of each part precedes it as 4 bytes, big endian.",
			"A verifier with the key accepts every `token` of `solve` at the time `now` from its client, and rejects every token of `refuse`.",
		},
		Key: vectorKey{newKey[:2], newKey[3:]},
	}
	for i, d := range []int{1, 7, 8, 12, 16} {
		now := noon.Add(time.Duration(i) * 61 * time.Second)
		c := Client{guest.Fingerprint, "sha256:" + hex.EncodeToString(bytes.Repeat([]byte{byte(i)}, 32))}
		o := Issuer{ring(t, newKey), at(now)}.Issue(c, d)
		token := Solve(o.Text, d)
		sum := sha256.Sum256([]byte(token))
		v.Solve = append(v.Solve, solveVector{o.Text, d, token, hex.EncodeToString(sum[:]), c.Fingerprint, c.Address, now})
	}
	for name, c := range rejectedTokens(t) {
		if len(c.token) < maxTokenLength {
			v.Refuse = append(v.Refuse, rejectVector{name, c.token, c.by.Fingerprint, c.by.Address, noon.Add(c.after)})
		}
	}
	slices.SortFunc(v.Refuse, func(a, b rejectVector) int { return strings.Compare(a.Name, b.Name) })
	return v
}

func TestVectors_MatchIssuedPuzzles(t *testing.T) {
	t.Parallel()
	vectortest.CheckGolden(t, buildVectors(t), "the issued puzzles differ from the published vectors, which clients rely on; an intended change needs a new version")
}

func TestVectors_VerifyAsPublished(t *testing.T) {
	t.Parallel()
	v := vectortest.Read[vectors](t)
	secret, err := base64.StdEncoding.DecodeString(v.Key.Secret)
	if err != nil {
		t.Fatal(err)
	}
	keys := ring(t, v.Key.ID+":"+v.Key.Secret)
	for _, c := range v.Solve {
		t.Run(c.Token, func(t *testing.T) {
			client := Client{c.Fingerprint, c.Address}
			if _, err := (Issuer{keys, at(c.Now)}).Verify(c.Token, client); err != nil {
				t.Errorf("Verify: %v", err)
			}
			if err := issuable(c.Token, secret, v.Key.ID, client, c.Now); err != nil {
				t.Errorf("rejected by the independent implementation: %v", err)
			}
			if sum := sha256.Sum256([]byte(c.Token)); hex.EncodeToString(sum[:]) != c.SHA256 || Solve(c.Challenge, c.Difficulty) != c.Token {
				t.Errorf("solution %s with the hash %x, want %s with %s", Solve(c.Challenge, c.Difficulty), sum, c.Token, c.SHA256)
			}
		})
	}
	for _, c := range v.Refuse {
		t.Run(c.Name, func(t *testing.T) {
			client := Client{c.Fingerprint, c.Address}
			if _, err := (Issuer{keys, at(c.Now)}).Verify(c.Token, client); err == nil {
				t.Error("accepted")
			}
			if issuable(c.Token, secret, v.Key.ID, client, c.Now) == nil {
				t.Error("accepted by the independent implementation")
			}
		})
	}
}
