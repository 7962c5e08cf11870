package handoff

import (
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/stay"
)

const (
	keyNovember = "hmac-2026-11:bm92ZW1iZXIncyBrZXksIGluIHRlc3RzIG9ubHkuLi4="
	keyMay      = "hmac-2026-05:bWF5J3Mga2V5LCBpbiB0ZXN0cyBvbmx5Li4uLi4uLi4="
	keyApril    = "hmac-2026-04:YXByaWwncyBrZXksIGluIHRlc3RzIG9ubHkuLi4uLi4="
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 41_000_000, time.UTC)

func mustParseKeys(t testing.TB, list ...string) Keys {
	t.Helper()
	k, err := ParseKeys(strings.Join(list, ","))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// newHandoff returns a handoff minted at noon.
func newHandoff() Handoff {
	return Handoff{
		ID: "bhd_01KAH9ZWV9F3M7X5Q2T8R4N6PC", GuestSessionID: "gms_01KAH9ZWV9Y6J3D1W0S8B4K2ET",
		TenantID: "tnt_01H8YN7QV4D8KZ4F8Y5CK4MV3D", PropertyID: "ppt_01H8YN7Q2P7GZ4F8Y5CK4MV3DT",
		Dates:  stay.Dates{CheckIn: stay.Date{Year: 2026, Month: 12, Day: 1}, CheckOut: stay.Date{Year: 2026, Month: 12, Day: 4}},
		Adults: 2, Children: 1, Rooms: 1, Currency: "AFN", Locale: "ps-AF", MintedAt: noon,
	}
}

func mustSign(t testing.TB, k Keys, h Handoff) (Handoff, string) {
	t.Helper()
	token, err := k.Sign(&h)
	if err != nil {
		t.Fatal(err)
	}
	return h, token
}

func TestKeysVerify_ReturnsSignedHandoff(t *testing.T) {
	t.Parallel()
	k := mustParseKeys(t, keyNovember)
	want, token := mustSign(t, k, newHandoff())
	got, err := k.Verify(token, noon)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if want.KeyID != "hmac-2026-11" || want.ExpiresAt.Sub(want.MintedAt) != 30*time.Minute {
		t.Errorf("signed by %s for %s, want hmac-2026-11 and 30m", want.KeyID, want.ExpiresAt.Sub(want.MintedAt))
	}
}

func TestHandoffCanonical_MatchesSpecification(t *testing.T) {
	t.Parallel()
	h, _ := mustSign(t, mustParseKeys(t, keyNovember), newHandoff())
	const want = `v1
bhd_01KAH9ZWV9F3M7X5Q2T8R4N6PC
gms_01KAH9ZWV9Y6J3D1W0S8B4K2ET
tnt_01H8YN7QV4D8KZ4F8Y5CK4MV3D
ppt_01H8YN7Q2P7GZ4F8Y5CK4MV3DT
2026-12-01
2026-12-04
2
1
1
AFN
ps-AF
2026-11-20T12:00:00.041Z
2026-11-20T12:30:00.041Z
hmac-2026-11`
	if diff := cmp.Diff(want, string(h.canonical())); diff != "" {
		t.Error(diff)
	}
}

func TestKeysVerify_TokenExpiresAfter30Minutes(t *testing.T) {
	t.Parallel()
	k := mustParseKeys(t, keyNovember)
	_, token := mustSign(t, k, newHandoff())
	for _, c := range []struct {
		name string
		at   time.Duration
		want error
	}{
		{"at once", 0, nil},
		{"a receiver's clock 30 s behind", -30 * time.Second, nil},
		{"a receiver's clock 2 min behind", -2 * time.Minute, ErrSignature},
		{"in the last millisecond", TTL - time.Millisecond, nil},
		{"after half an hour", TTL, ErrExpired},
		{"a year later", 365 * 24 * time.Hour, ErrExpired},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := k.Verify(token, noon.Add(c.at)); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
	if _, err := k.VerifySignature(token); err != nil {
		t.Errorf("VerifySignature: %v, want nil at any time", err)
	}
}

// The life must be exactly TTL: a token with a valid MAC and another life is rejected too.
func TestKeysVerifySignature_RejectsOtherLifetimes(t *testing.T) {
	t.Parallel()
	k := mustParseKeys(t, keyNovember)
	for _, life := range []time.Duration{TTL - time.Millisecond, TTL + time.Millisecond, 24 * time.Hour, 0, -TTL} {
		t.Run(life.String(), func(t *testing.T) {
			h, _ := mustSign(t, k, newHandoff())
			h.ExpiresAt = h.MintedAt.Add(life)
			if _, err := k.VerifySignature(signText(h.canonical(), k.ring.Active())); !errors.Is(err, ErrSignature) {
				t.Errorf("error %v, want ErrSignature", err)
			}
		})
	}
}

func TestKeysVerify_AcceptsGraceKeyDuringRotation(t *testing.T) {
	t.Parallel()
	_, old := mustSign(t, mustParseKeys(t, keyMay), newHandoff())
	_, current := mustSign(t, mustParseKeys(t, keyNovember, keyMay), newHandoff())
	for _, c := range []struct {
		name         string
		keys         Keys
		old, current error
	}{
		{"before the rotation", mustParseKeys(t, keyMay), nil, ErrSignature},
		{"new key known, not yet active", mustParseKeys(t, keyMay, keyNovember), nil, nil},
		{"new key active, old key in grace", mustParseKeys(t, keyNovember, keyMay), nil, nil},
		{"after the grace period", mustParseKeys(t, keyNovember), ErrSignature, nil},
		{"no keys", Keys{}, ErrSignature, ErrSignature},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := c.keys.Verify(old, noon); !errors.Is(err, c.old) {
				t.Errorf("old token: error %v, want %v", err, c.old)
			}
			if _, err := c.keys.Verify(current, noon); !errors.Is(err, c.current) {
				t.Errorf("current token: error %v, want %v", err, c.current)
			}
		})
	}
}

func TestKeysVerify_KeyIDMustMatchSecret(t *testing.T) {
	t.Parallel()
	renamed := "hmac-2026-11:" + strings.TrimPrefix(keyApril, "hmac-2026-04:")
	_, token := mustSign(t, mustParseKeys(t, renamed), newHandoff())
	if _, err := mustParseKeys(t, keyNovember, keyApril).Verify(token, noon); !errors.Is(err, ErrSignature) {
		t.Errorf("error %v, want ErrSignature", err)
	}
}

func TestKeysVerifySignature_RejectsAnyFlippedBit(t *testing.T) {
	t.Parallel()
	k := mustParseKeys(t, keyNovember, keyMay)
	_, token := mustSign(t, k, newHandoff())
	for bit := range len(token) * 8 {
		flipped := []byte(token)
		flipped[bit/8] ^= 1 << (bit % 8)
		if _, err := k.VerifySignature(string(flipped)); !errors.Is(err, ErrSignature) {
			t.Fatalf("bit %d of the token flipped: error %v, want ErrSignature", bit, err)
		}
	}
	text, mac, _ := splitToken(token)
	for bit := range (len(text) + len(mac)) * 8 { // of the decoded token
		flipped := append([]byte(text), mac...)
		flipped[bit/8] ^= 1 << (bit % 8)
		forged := encoding.EncodeToString(flipped[:len(text)]) + "." + encoding.EncodeToString(flipped[len(text):])
		if _, err := k.VerifySignature(forged); !errors.Is(err, ErrSignature) {
			t.Fatalf("bit %d of the text and MAC flipped: error %v, want ErrSignature", bit, err)
		}
	}
}

func TestKeysVerifySignature_RejectsNonCanonicalEncodings(t *testing.T) {
	t.Parallel()
	k := mustParseKeys(t, keyNovember)
	_, token := mustSign(t, k, newHandoff())
	text, mac, _ := strings.Cut(token, ".")
	last := func(s string) string { // the same bytes with one of the unused last bits set
		digits := "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
		return s[:len(s)-1] + string(digits[strings.IndexByte(digits, s[len(s)-1])|1])
	}
	for name, forged := range map[string]string{
		"empty":                  "",
		"a dot":                  ".",
		"no MAC":                 text,
		"an empty MAC":           text + ".",
		"a truncated MAC":        token[:len(token)-1],
		"half a MAC":             token[:len(token)-21],
		"no text":                "." + mac,
		"truncated text":         text[:len(text)-4] + "." + mac,
		"padded":                 token + "=",
		"padded text":            text + "=." + mac,
		"unused bits of the MAC": text + "." + last(mac),
		"a newline at the end":   token + "\n",
		"a newline at the start": "\n" + token,
		"a newline inside":       text[:40] + "\n" + text[40:] + "." + mac,
		"CR LF inside the MAC":   text + "." + mac[:4] + "\r\n" + mac[4:],
		"a space at the end":     token + " ",
		"standard base64":        strings.NewReplacer("-", "+", "_", "/").Replace(token) + "+",
		"percent-encoded":        strings.Replace(token, ".", "%2E", 1),
		"encoded twice":          encoding.EncodeToString([]byte(token)),
		"three parts":            token + "." + mac,
		"the header of a JWT":    "eyJhbGciOiJub25lIn0." + token,
		"JWT without signature":  "eyJhbGciOiJub25lIn0.eyJpZCI6ImJoZCJ9.",
		"swapped":                mac + "." + text,
		"a NUL":                  token + "\x00",
		"not ASCII":              token + "é",
		"huge":                   strings.Repeat("A", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := k.VerifySignature(forged); !errors.Is(err, ErrSignature) {
				t.Errorf("error %v, want ErrSignature", err)
			}
		})
	}
}

// A text with a valid MAC is rejected unless this package would write the same text.
func TestKeysVerifySignature_RejectsSignedNonCanonicalText(t *testing.T) {
	t.Parallel()
	k := mustParseKeys(t, keyNovember)
	h, _ := mustSign(t, k, newHandoff())
	good := string(h.canonical())
	for name, c := range map[string]struct{ old, new string }{
		"another version":             {"v1\n", "v2\n"},
		"no version":                  {"v1\n", ""},
		"an additional line":          {"AFN\n", "AFN\n\n"},
		"a missing line":              {"AFN\n", ""},
		"CR LF":                       {"\n2026-12-04\n", "\r\n2026-12-04\r\n"},
		"a newline at the end":        {"\nhmac-2026-11", "\nhmac-2026-11\nhmac-2026-11"},
		"a signed number":             {"\n2\n", "\n+2\n"},
		"a leading zero":              {"\n2\n", "\n02\n"},
		"a space":                     {"\n2\n", "\n2 \n"},
		"no adults":                   {"\n2\n", "\n0\n"},
		"too many adults":             {"\n2\n", "\n17\n"},
		"nine rooms":                  {"\n2\n1\n1\n", "\n2\n1\n9\n"},
		"children below zero":         {"\n2\n1\n1\n", "\n2\n-1\n1\n"},
		"a number beyond int":         {"\n2\n", "\n99999999999999999999\n"},
		"dates reversed":              {"\n2026-12-01\n2026-12-04\n", "\n2026-12-04\n2026-12-01\n"},
		"dates equal":                 {"\n2026-12-01\n", "\n2026-12-04\n"},
		"31 nights":                   {"\n2026-12-04\n", "\n2027-01-01\n"},
		"a day that does not exist":   {"\n2026-12-01\n", "\n2026-11-31\n"},
		"a lower-case id":             {"bhd_01KAH9ZWV9F3", "bhd_01kah9zwv9f3"},
		"an id of another kind":       {"bhd_01KAH9ZWV9F3", "srs_01KAH9ZWV9F3"},
		"a lower-case currency":       {"\nAFN\n", "\nafn\n"},
		"a locale with a control":     {"\nps-AF\n", "\nps-A\x01\n"},
		"an underscore in a locale":   {"\nps-AF\n", "\nps_AF\n"},
		"no milliseconds":             {"12:00:00.041Z", "12:00:00Z"},
		"a comma before milliseconds": {"12:00:00.041Z", "12:00:00,041Z"},
		"another time zone":           {"12:00:00.041Z", "12:00:00.041+00:00"},
		"a key id with more digits":   {"hmac-2026-11", "hmac-2026-011"},
		"a thirteenth month":          {"hmac-2026-11", "hmac-2026-13"},
		"a field that is not UTF-8":   {"\nAFN\n", "\nA\xff\xfe\n"},
		"a newline inside the stay":   {"2026-12-01", "2026-12-01\n"},
		"swapped fields":              {"\nAFN\nps-AF\n", "\nps-AF\nAFN\n"},
		"an id beyond the ULID range": {"gms_01KAH9ZWV9", "gms_81KAH9ZWV9"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(good, c.old, c.new, 1)
			if text == good {
				t.Fatalf("the text has no %q", c.old)
			}
			if _, err := k.VerifySignature(signText([]byte(text), k.ring.Active())); !errors.Is(err, ErrSignature) {
				t.Errorf("error %v, want ErrSignature", err)
			}
		})
	}
}

func TestKeysSign_RejectsInvalidHandoff(t *testing.T) {
	t.Parallel()
	k := mustParseKeys(t, keyNovember)
	for name, spoil := range map[string]func(*Handoff){
		"a newline in the currency":    func(h *Handoff) { h.Currency = "AF\n" },
		"a newline after the currency": func(h *Handoff) { h.Currency = "AFN\n" },
		"a newline in the locale":      func(h *Handoff) { h.Locale = "ps\nAF" },
		"a tab in an id":               func(h *Handoff) { h.TenantID = "tnt_01H8YN7QV4D8KZ4F8Y5CK4MV3\t" },
		"a DEL in an id":               func(h *Handoff) { h.PropertyID += "\x7f" },
		"no session":                   func(h *Handoff) { h.GuestSessionID = "" },
		"no dates":                     func(h *Handoff) { h.Dates = stay.Dates{} },
		"a year of five digits":        func(h *Handoff) { h.Dates.CheckOut.Year = 12026 },
		"a date off the calendar":      func(h *Handoff) { h.Dates.CheckIn.Day = 0 },
		"no adults":                    func(h *Handoff) { h.Adults = 0 },
		"a zero time":                  func(h *Handoff) { h.MintedAt = time.Time{} },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandoff()
			spoil(&h)
			if token, err := k.Sign(&h); err == nil {
				t.Errorf("token %s, want an error", token)
			} else if strings.ContainsAny(err.Error(), "\n\t\x7f") {
				t.Errorf("the error contains the value: %v", err)
			}
		})
	}
}

func TestParseKeys_RequiresMonthNames(t *testing.T) {
	t.Parallel()
	secret := strings.TrimPrefix(keyMay, "hmac-2026-05")
	for _, name := range []string{"", "may", "hmac-2026", "hmac-2026-5", "hmac-2026-00", "hmac-2026-13", "HMAC-2026-05", "hmac-2026-05-01"} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseKeys(name + secret); err == nil {
				t.Errorf("key id %q accepted", name)
			}
		})
	}
	h := newHandoff()
	if _, err := (Keys{}).Sign(&h); !errors.Is(err, keyring.ErrEmpty) {
		t.Errorf("Sign without keys: error %v, want ErrEmpty", err)
	}
	if _, err := ParseKeys(""); !errors.Is(err, keyring.ErrEmpty) {
		t.Errorf("ParseKeys of an empty string: error %v, want ErrEmpty", err)
	}
}

// Other services use the package too, some of them without Postgres and Redis.
func TestHandoff_LinksNoStoreClients(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Skip("no go command: ", err)
	}
	for _, client := range []string{"github.com/jackc/pgx", "github.com/redis", "database/sql\n", "cloud.google.com", "/shared/web"} {
		if strings.Contains(string(out), client) {
			t.Errorf("links %s", client)
		}
	}
}

func TestLink_BuildsAndValidatesURLs(t *testing.T) {
	t.Parallel()
	var platform Link
	if got := platform.URLWithToken("kabul-grand", "a.b"); got != "https://kabul-grand.melmastoon.ghasi.io/book?h=a.b" {
		t.Errorf("URL of the platform with a token: %s", got)
	}
	var custom Link
	if err := custom.UnmarshalText([]byte("http://127.0.0.1:8080/book/{tenantSlug}")); err != nil {
		t.Fatal(err)
	}
	if got := custom.URL("kabul-grand"); got != "http://127.0.0.1:8080/book/kabul-grand" {
		t.Errorf("URL of a custom link: %s", got)
	}
	for _, bad := range []string{
		"", "https://melmastoon.ghasi.io/book", "https://{tenantSlug}.x.io/{tenantSlug}", "https://{tenantSlug}.x.io/book?a=b",
		"https://{tenantSlug}.x.io/#book", "ftp://{tenantSlug}.x.io", "{tenantSlug}", "javascript:{tenantSlug}", "https://u@{tenantSlug}.x.io/",
	} {
		t.Run(bad, func(t *testing.T) {
			if err := custom.UnmarshalText([]byte(bad)); err == nil {
				t.Errorf("link %q accepted", bad)
			}
		})
	}
}

func BenchmarkKeysSign(b *testing.B) {
	k, h := mustParseKeys(b, keyNovember), newHandoff()
	for b.Loop() {
		if _, err := k.Sign(&h); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkKeysVerify(b *testing.B) {
	k := mustParseKeys(b, keyNovember)
	_, token := mustSign(b, k, newHandoff())
	for b.Loop() {
		if _, err := k.Verify(token, noon); err != nil {
			b.Fatal(err)
		}
	}
}
