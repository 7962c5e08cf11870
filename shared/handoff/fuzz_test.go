package handoff

import (
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
)

// FuzzKeysVerifySignature_Token: signing the content of an accepted token again gives the same
// token.
func FuzzKeysVerifySignature_Token(f *testing.F) {
	k := mustParseKeys(f, keyNovember, keyMay)
	_, token := mustSign(f, k, newHandoff())
	f.Add(token)
	f.Add(token + "=")
	f.Add("a.b")
	f.Fuzz(func(t *testing.T, token string) { checkSignsBack(t, k, token) })
}

// FuzzKeysVerifySignature_SignedText gives each text of the fuzzer a valid MAC, to test the
// property beyond the MAC.
func FuzzKeysVerifySignature_SignedText(f *testing.F) {
	k := mustParseKeys(f, keyNovember, keyMay)
	h, _ := mustSign(f, k, newHandoff())
	f.Add(string(h.canonical()), false)
	f.Add(strings.Replace(string(h.canonical()), "\n2\n", "\n02\n", 1), false)
	f.Add(strings.ReplaceAll(string(h.canonical()), "11", "05"), true)
	f.Add(strings.Repeat("\n", canonicalLines-1), true)
	f.Fuzz(func(t *testing.T, text string, grace bool) {
		key := k.ring[0]
		if grace {
			key = k.ring[1]
		}
		checkSignsBack(t, k, signText([]byte(text), key))
	})
}

// FuzzKeysSign_RoundTrip: Sign rejects a handoff of the fuzzer, or Verify returns the same handoff
// and the text has fifteen lines.
func FuzzKeysSign_RoundTrip(f *testing.F) {
	k := mustParseKeys(f, keyNovember)
	f.Add("bhd_01KAH9ZWV9F3M7X5Q2T8R4N6PC", "tnt_01H8YN7QV4D8KZ4F8Y5CK4MV3D", 2026, 12, 1, 3, 2, 1, 1, "AFN", "ps-AF", noon.UnixMilli())
	f.Add("bhd_\n", "tnt_", 0, 0, 0, 0, 0, 0, 0, "A\nB", "", int64(-1))
	f.Fuzz(func(t *testing.T, handoffID, tenant string, y, m, d, nights, adults, children, rooms int, currency, locale string, minted int64) {
		h := newHandoff()
		h.ID, h.TenantID, h.Currency, h.Locale = handoffID, tenant, currency, locale
		h.Adults, h.Children, h.Rooms = adults, children, rooms
		h.Dates.CheckIn = stay.Date{Year: y, Month: time.Month(m), Day: d}
		h.Dates.CheckOut = h.Dates.CheckIn.AddDays(nights % 1000)
		h.MintedAt = time.UnixMilli(minted)
		token, err := k.Sign(&h)
		if err != nil {
			return
		}
		got, err := k.Verify(token, h.MintedAt)
		if err != nil || got != h {
			t.Fatalf("verified %+v, error %v; want %+v", got, err, h)
		}
		if text, _, _ := splitToken(token); strings.Count(text, "\n") != canonicalLines-1 {
			t.Fatalf("text %q, want %d lines", text, canonicalLines)
		}
	})
}

// checkSignsBack checks that an accepted token is the token that Sign returns for its content.
func checkSignsBack(t *testing.T, k Keys, token string) {
	h, err := k.VerifySignature(token)
	if err != nil {
		return
	}
	key, _ := k.ring.Find(h.KeyID)
	again, err := Keys{keyring.Ring{key}}.Sign(&h)
	if err != nil || again != token {
		t.Fatalf("token %q accepted, but signing gives %q, error %v", token, again, err)
	}
}
