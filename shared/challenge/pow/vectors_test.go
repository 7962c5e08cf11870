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

// vectors is what a client in any language checks its solver with, and a verifier itself.
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
	Token       string    `json:"token"` // with the smallest number that solves it
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
			"A client finds `token` for `challenge`: the challenge, '.', and the smallest number from 0 for which the SHA-256 of the whole begins with `difficulty` zero bits. Any such number will do.",
			"challenge = 'pow1.' difficulty '.' expires '.' key id '.' base64url, without padding, of the first 16 bytes of the HMAC-SHA-256 of: 'challenge.pow.v1', the text before the last '.', fingerprint and address, each behind its length as 4 bytes, big endian.",
			"A verifier that knows the key takes every `token` of `solve` at the time `now` from that client, and none of `refuse`.",
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
	vectortest.CheckGolden(t, buildVectors(t), "puzzles changed: clients know the published ones. If that is meant, the version changes too.")
}

func TestVectors_CheckAsPublished(t *testing.T) {
	v := vectortest.Read[vectors](t)
	secret, err := base64.StdEncoding.DecodeString(v.Key.Secret)
	if err != nil {
		t.Fatal(err)
	}
	keys := ring(t, v.Key.ID+":"+v.Key.Secret)
	for _, c := range v.Solve {
		client := Client{c.Fingerprint, c.Address}
		if _, err := (Issuer{keys, at(c.Now)}).Verify(c.Token, client); err != nil {
			t.Errorf("%s: %v", c.Token, err)
		}
		if err := issuable(c.Token, secret, v.Key.ID, client, c.Now); err != nil {
			t.Errorf("the text of the documentation says otherwise: %v", err)
		}
		if sum := sha256.Sum256([]byte(c.Token)); hex.EncodeToString(sum[:]) != c.SHA256 || Solve(c.Challenge, c.Difficulty) != c.Token {
			t.Errorf("%s is solved otherwise", c.Challenge)
		}
	}
	for _, c := range v.Refuse {
		client := Client{c.Fingerprint, c.Address}
		if _, err := (Issuer{keys, at(c.Now)}).Verify(c.Token, client); err == nil {
			t.Errorf("%s: taken", c.Name)
		}
		if issuable(c.Token, secret, v.Key.ID, client, c.Now) == nil {
			t.Errorf("%s: the text of the documentation would take it", c.Name)
		}
	}
}
