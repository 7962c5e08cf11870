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

	"melmastoon.ghasi.io/bff-consumer/shared/instant"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
	"melmastoon.ghasi.io/bff-consumer/shared/vectortest"
)

// vectors is what a verifier in any language checks itself with.
type vectors struct {
	About  []string       `json:"about"`
	Keys   []vectorKey    `json:"keys"`
	Accept []acceptVector `json:"accept"`
	Refuse []refuseVector `json:"refuse"`
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

type refuseVector struct {
	Name  string    `json:"name"`
	Now   time.Time `json:"now"`
	Token string    `json:"token"`
	Why   string    `json:"why"` // signature or expired
}

// made is the file as this package would write it.
func made(t *testing.T) vectors {
	t.Helper()
	v := vectors{About: []string{
		"Test vectors of the handoff token. The secrets are for tests only.",
		"token = base64url(canonical) '.' base64url(HMAC-SHA-256(secret, canonical)), no padding. canonical: 15 lines, LF between them, none at the end.",
		"A verifier knows the keys below, active and grace alike, and no other. At the time `now` it accepts every token of `accept`, reads those fields, and refuses every token of `refuse`: as not genuine (signature) or as too late (expired).",
	}}
	for _, k := range []string{november, may} {
		name, secret, _ := strings.Cut(k, ":")
		v.Keys = append(v.Keys, vectorKey{name, secret})
	}
	family := stayInKabul()
	family.ID, family.Adults, family.Children, family.Rooms = "bhd_01KAH9ZWV97ZZZZZZZZZZZZZZZ", 16, 10, 8
	family.Currency, family.Locale, family.MintedAt = "IRR", "ar", time.Date(2027, 2, 28, 23, 59, 59, 999_000_000, time.UTC)
	family.Dates = stay.Dates{CheckIn: stay.Date{Year: 2028, Month: 2, Day: 28}, CheckOut: stay.Date{Year: 2028, Month: 3, Day: 29}}
	for _, c := range []struct {
		name string
		k    Keys
		h    Handoff
		at   time.Duration
	}{
		{"the active key", keys(t, november), stayInKabul(), 0},
		{"the key in grace", keys(t, may), stayInKabul(), time.Minute},
		{"the last millisecond of its life", keys(t, november), stayInKabul(), TTL - time.Millisecond},
		{"the largest party, over a leap day", keys(t, november), family, time.Second},
	} {
		h, token := sign(t, c.k, c.h)
		_, mac, _ := strings.Cut(token, ".")
		v.Accept = append(v.Accept, acceptVector{c.name, h.MintedAt.Add(c.at), fields(h), string(h.canonical()), mac, token})
	}
	h, token := sign(t, keys(t, november), stayInKabul())
	good := string(h.canonical())
	text, mac, _ := strings.Cut(token, ".")
	active := keys(t, november).ring.Active()
	signed := func(old, new string) string { return seal([]byte(strings.Replace(good, old, new, 1)), active) }
	refuse := func(name, token string) {
		v.Refuse = append(v.Refuse, refuseVector{name, noon.Add(time.Minute), token, "signature"})
	}
	_, foreign := sign(t, keys(t, april), stayInKabul())
	refuse("a key that is not known any more", foreign)
	refuse("the name of a known key, the secret of another", renamed(t, april, "hmac-2026-11"))
	refuse("another currency under the same MAC", strings.Replace(token, text, encoding.EncodeToString([]byte(strings.Replace(good, "AFN", "USD", 1))), 1))
	refuse("truncated", token[:len(token)-1])
	refuse("padded", token+"=")
	refuse("standard base64 of the MAC, padded", text+"."+base64.StdEncoding.EncodeToString(active.HMAC([]byte(good))))
	refuse("a newline behind", token+"\n")
	refuse("a newline inside", text[:40]+"\n"+text[40:]+"."+mac)
	refuse("three parts", token+"."+mac)
	refuse("SHA-1 instead of SHA-256", text+".2jmj7l5rSw0yVb_vlWAYkK_YBwk")
	refuse("no MAC", text+".")
	refuse("signed, but of version 2", signed("v1\n", "v2\n"))
	refuse("signed, but a newline at the end", seal([]byte(good+"\n"), active))
	refuse("signed, but with CR LF", signed("\nAFN\n", "\r\nAFN\n"))
	refuse("signed, but for 31 minutes", signed("12:30:00.041Z", "12:31:00.041Z"))
	refuse("signed, but with a leading zero", signed("\n2\n", "\n02\n"))
	refuse("signed, but without milliseconds", signed("12:00:00.041Z", "12:00:00Z"))
	refuse("signed, but with a lower-case id", signed("bhd_01KAH9ZWV9", "bhd_01kah9zwv9"))
	v.Refuse = append(v.Refuse,
		refuseVector{"after half an hour", noon.Add(TTL), token, "expired"},
		refuseVector{"from the future", noon.Add(-2 * time.Minute), token, "signature"})
	return v
}

// renamed is a token that says it was signed by another key than the one that signed it.
func renamed(t *testing.T, key, name string) string {
	_, secret, _ := strings.Cut(key, ":")
	_, token := sign(t, keys(t, name+":"+secret), stayInKabul())
	return token
}

func fields(h Handoff) vectorFields {
	return vectorFields{
		h.ID, h.GuestSessionID, h.TenantID, h.PropertyID, h.Dates.CheckIn.String(), h.Dates.CheckOut.String(),
		h.Adults, h.Children, h.Rooms, h.Currency, h.Locale,
		instant.Text(h.MintedAt), instant.Text(h.ExpiresAt), h.KeyID,
	}
}

func TestTheVectorsAreWhatWeSign(t *testing.T) {
	vectortest.Same(t, made(t), "tokens changed: whoever verifies ours would refuse them. If that is meant, it is version 2.")
}

func TestTheVectorsHold(t *testing.T) {
	v := vectortest.Read[vectors](t)
	var list []string
	for _, k := range v.Keys {
		list = append(list, k.ID+":"+k.Secret)
	}
	k := keys(t, list...)
	for _, c := range v.Accept {
		h, err := k.Verify(c.Token, c.Now)
		if err != nil || fields(h) != c.Handoff {
			t.Errorf("%s: %+v, %v", c.Name, h, err)
		}
	}
	for _, c := range v.Refuse {
		want := map[string]error{"signature": ErrSignature, "expired": ErrExpired}[c.Why]
		if _, err := k.Verify(c.Token, c.Now); want == nil || !errors.Is(err, want) {
			t.Errorf("%s: %v", c.Name, err)
		}
	}
}

// The vectors agree with the specification, not only with this package: nothing of it is used here.
func TestTheVectorsFollowFromTheSpecification(t *testing.T) {
	v := vectortest.Read[vectors](t)
	for _, c := range v.Accept {
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
			t.Errorf("%s: %q %s", c.Name, text, sum)
		}
	}
}
