package handoff

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/vectortest"
	"melmastoon.ghasi.io/bff-consumer/shared/timestamp"
)

// vectors are the published test vectors for verifiers in any language.
type vectors struct {
	About  []string       `json:"about"`
	Keys   []vectorKey    `json:"keys"`
	Accept []acceptVector `json:"accept"`
	Reject []rejectVector `json:"refuse"`
}

type vectorKey struct {
	ID     string `json:"id"`
	Secret string `json:"secretBase64"`
}

type acceptVector struct {
	Name      string       `json:"name"`
	Now       time.Time    `json:"now"`
	Handoff   vectorFields `json:"handoff"`
	Canonical string       `json:"canonical"`
	HMAC      string       `json:"hmacBase64url"`
	Token     string       `json:"token"`
}

type vectorFields struct {
	ID             string `json:"id"`
	GuestSessionID string `json:"guestSessionId"`
	TenantID       string `json:"tenantId"`
	PropertyID     string `json:"propertyId"`
	CheckIn        string `json:"checkIn"`
	CheckOut       string `json:"checkOut"`
	Adults         int    `json:"adults"`
	Children       int    `json:"children"`
	Rooms          int    `json:"rooms"`
	Currency       string `json:"currency"`
	Locale         string `json:"locale"`
	MintedAt       string `json:"mintedAt"`
	ExpiresAt      string `json:"expiresAt"`
	KeyID          string `json:"hmacKeyId"`
}

type rejectVector struct {
	Name   string    `json:"name"`
	Now    time.Time `json:"now"`
	Token  string    `json:"token"`
	Reason string    `json:"why"` // signature or expired
}

// generateVectors returns the vectors that this package generates.
func generateVectors(t *testing.T) vectors {
	t.Helper()
	v := vectors{About: []string{
		"Test vectors of the handoff token. The secrets are for tests only.",
		"token = base64url(canonical) '.' base64url(HMAC-SHA-256(secret, canonical)), no padding. canonical: 15 lines, LF between them, none at the end.",
		"A verifier has exactly the keys below, active and in grace. At the time `now` the verifier accepts every token of `accept` with the stated fields, and rejects every token of `refuse` for the reason `why`: invalid (signature) or expired.",
	}}
	for _, k := range []string{keyNovember, keyMay} {
		name, secret, _ := strings.Cut(k, ":")
		v.Keys = append(v.Keys, vectorKey{name, secret})
	}
	family := newHandoff()
	family.ID, family.Adults, family.Children, family.Rooms = "bhd_01KAH9ZWV97ZZZZZZZZZZZZZZZ", 16, 10, 8
	family.Currency, family.Locale, family.MintedAt = "IRR", "ar", time.Date(2027, 2, 28, 23, 59, 59, 999_000_000, time.UTC)
	family.Dates = stay.Dates{CheckIn: stay.Date{Year: 2028, Month: 2, Day: 28}, CheckOut: stay.Date{Year: 2028, Month: 3, Day: 29}}
	for _, c := range []struct {
		name string
		k    Keys
		h    Handoff
		at   time.Duration
	}{
		{"the active key", mustParseKeys(t, keyNovember), newHandoff(), 0},
		{"the key in grace", mustParseKeys(t, keyMay), newHandoff(), time.Minute},
		{"the last millisecond before expiry", mustParseKeys(t, keyNovember), newHandoff(), TTL - time.Millisecond},
		{"the largest party, over a leap day", mustParseKeys(t, keyNovember), family, time.Second},
	} {
		h, token := mustSign(t, c.k, c.h)
		_, mac, _ := strings.Cut(token, ".")
		v.Accept = append(v.Accept, acceptVector{c.name, h.MintedAt.Add(c.at), toVectorFields(h), string(h.canonical()), mac, token})
	}
	h, token := mustSign(t, mustParseKeys(t, keyNovember), newHandoff())
	good := string(h.canonical())
	text, mac, _ := strings.Cut(token, ".")
	active := mustParseKeys(t, keyNovember).ring.Active()
	signed := func(old, new string) string { return signText([]byte(strings.Replace(good, old, new, 1)), active) }
	reject := func(name, token string) {
		v.Reject = append(v.Reject, rejectVector{name, noon.Add(time.Minute), token, "signature"})
	}
	_, retired := mustSign(t, mustParseKeys(t, keyApril), newHandoff())
	reject("a retired key", retired)
	reject("the id of a known key with the secret of another key", tokenWithKeyID(t, keyApril, "hmac-2026-11"))
	reject("another currency under the same MAC", strings.Replace(token, text, encoding.EncodeToString([]byte(strings.Replace(good, "AFN", "USD", 1))), 1))
	reject("truncated", token[:len(token)-1])
	reject("padded", token+"=")
	reject("standard base64 of the MAC, padded", text+"."+base64.StdEncoding.EncodeToString(active.HMAC([]byte(good))))
	reject("a newline at the end", token+"\n")
	reject("a newline inside", text[:40]+"\n"+text[40:]+"."+mac)
	reject("three parts", token+"."+mac)
	reject("SHA-1 instead of SHA-256", text+".2jmj7l5rSw0yVb_vlWAYkK_YBwk")
	reject("no MAC", text+".")
	reject("signed, but version 2", signed("v1\n", "v2\n"))
	reject("signed, but a newline at the end", signText([]byte(good+"\n"), active))
	reject("signed, but CR LF", signed("\nAFN\n", "\r\nAFN\n"))
	reject("signed, but for 31 minutes", signed("12:30:00.041Z", "12:31:00.041Z"))
	reject("signed, but a leading zero", signed("\n2\n", "\n02\n"))
	reject("signed, but no milliseconds", signed("12:00:00.041Z", "12:00:00Z"))
	reject("signed, but a lower-case id", signed("bhd_01KAH9ZWV9", "bhd_01kah9zwv9"))
	v.Reject = append(v.Reject,
		rejectVector{"after 30 minutes", noon.Add(TTL), token, "expired"},
		rejectVector{"minted in the future", noon.Add(-2 * time.Minute), token, "signature"})
	return v
}

// tokenWithKeyID returns a token that key signed and that names another key id.
func tokenWithKeyID(t *testing.T, key, name string) string {
	_, secret, _ := strings.Cut(key, ":")
	_, token := mustSign(t, mustParseKeys(t, name+":"+secret), newHandoff())
	return token
}

func toVectorFields(h Handoff) vectorFields {
	return vectorFields{
		h.ID, h.GuestSessionID, h.TenantID, h.PropertyID, h.Dates.CheckIn.String(), h.Dates.CheckOut.String(),
		h.Adults, h.Children, h.Rooms, h.Currency, h.Locale,
		timestamp.Format(h.MintedAt), timestamp.Format(h.ExpiresAt), h.KeyID,
	}
}

func TestVectors_MatchGenerated(t *testing.T) {
	t.Parallel()
	vectortest.CheckGolden(t, generateVectors(t), "the generated tokens differ from the published vectors: verifiers would reject the tokens; an intended change needs version 2")
}

func TestVectors_VerifyAsStated(t *testing.T) {
	t.Parallel()
	v := vectortest.Read[vectors](t)
	var list []string
	for _, k := range v.Keys {
		list = append(list, k.ID+":"+k.Secret)
	}
	k := mustParseKeys(t, list...)
	for _, c := range v.Accept {
		t.Run(c.Name, func(t *testing.T) {
			h, err := k.Verify(c.Token, c.Now)
			if diff := cmp.Diff(c.Handoff, toVectorFields(h)); err != nil || diff != "" {
				t.Error(err, diff)
			}
		})
	}
	for _, c := range v.Reject {
		t.Run(c.Name, func(t *testing.T) {
			want := map[string]error{"signature": ErrSignature, "expired": ErrExpired}[c.Reason]
			if _, err := k.Verify(c.Token, c.Now); want == nil || !errors.Is(err, want) {
				t.Errorf("error %v, want %v", err, want)
			}
		})
	}
}

// The vectors follow from the specification: this test uses no code of the package.
func TestVectors_FollowFromSpecification(t *testing.T) {
	t.Parallel()
	v := vectortest.Read[vectors](t)
	for _, c := range v.Accept {
		t.Run(c.Name, func(t *testing.T) {
			f := c.Handoff
			number := func(n int) string { b, _ := json.Marshal(n); return string(b) }
			text := strings.Join([]string{
				"v1", f.ID, f.GuestSessionID, f.TenantID, f.PropertyID, f.CheckIn, f.CheckOut,
				number(f.Adults), number(f.Children), number(f.Rooms), f.Currency, f.Locale, f.MintedAt, f.ExpiresAt, f.KeyID,
			}, "\n")
			var secret []byte
			for _, k := range v.Keys {
				if k.ID == f.KeyID {
					secret, _ = base64.StdEncoding.DecodeString(k.Secret)
				}
			}
			mac := hmac.New(sha256.New, secret)
			mac.Write([]byte(text))
			sum := base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
			token := base64.RawURLEncoding.EncodeToString([]byte(text)) + "." + sum
			if text != c.Canonical || sum != c.HMAC || token != c.Token {
				t.Errorf("canonical %q, HMAC %s, token %s; want %q, %s, %s", text, sum, token, c.Canonical, c.HMAC, c.Token)
			}
		})
	}
}
