package pow

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/flags"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
)

const (
	newKey = "k2:Y2hhbGxlbmdlIGtleSB0d28sIGZvciB0ZXN0cyBvbmx5"
	oldKey = "k1:Y2hhbGxlbmdlIGtleSBvbmUsIGZvciB0ZXN0cyBvbmx5"
)

var (
	noon  = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	guest = Client{"sha256:" + strings.Repeat("1a", 32), "sha256:" + strings.Repeat("2b", 32)}
)

func ring(t testing.TB, keys ...string) keyring.Ring {
	t.Helper()
	r, err := keyring.Parse(strings.Join(keys, ","))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func at(now time.Time) func() time.Time { return func() time.Time { return now } }

func TestIssuerVerify_AcceptsSolvedPuzzle(t *testing.T) {
	t.Parallel()
	p := Issuer{ring(t, newKey, oldKey), at(noon)}
	o := p.Issue(guest, 12)
	if o.Difficulty != 12 || !o.Expires.Equal(noon.Add(time.Hour)) {
		t.Errorf("%+v, want difficulty 12 and an expiry after an hour", o)
	}
	token := Solve(o.Text, o.Difficulty)
	for name, now := range map[string]time.Time{"at once": noon, "59 minutes later": noon.Add(59 * time.Minute), "receiver's clock behind": noon.Add(-maxClockSkew)} {
		t.Run(name, func(t *testing.T) {
			p.Now = at(now)
			if expires, err := p.Verify(token, guest); err != nil || !expires.Equal(noon.Add(time.Hour)) {
				t.Errorf("expiry %v, error %v; want %v", expires, err, noon.Add(time.Hour))
			}
		})
	}
	previous := Issuer{ring(t, oldKey), at(noon)}
	puzzle := previous.Issue(guest, 4)
	p.Now = at(noon)
	if _, err := p.Verify(Solve(puzzle.Text, 4), guest); err != nil {
		t.Errorf("puzzle of the previous key: %v", err)
	}
}

func TestIssuerIssue_SamePuzzleWithinMinute(t *testing.T) {
	t.Parallel()
	p := Issuer{ring(t, newKey), at(noon.Add(time.Second))}
	first := p.Issue(guest, 16)
	p.Now = at(noon.Add(59 * time.Second))
	if p.Issue(guest, 16) != first {
		t.Error("another puzzle within the minute")
	}
	p.Now = at(noon.Add(time.Minute))
	if p.Issue(guest, 16) == first {
		t.Error("the same puzzle after a minute")
	}
}

func TestIssuerIssue_ClampsDifficulty(t *testing.T) {
	t.Parallel()
	p := Issuer{ring(t, newKey), at(noon)}
	for difficulty, want := range map[int]int{-3: 1, 0: 1, 1: 1, 24: 24, 25: 24, 1000: 24} {
		if o := p.Issue(guest, difficulty); o.Difficulty != want || !strings.HasPrefix(o.Text, fmt.Sprintf("pow1.%d.", want)) {
			t.Errorf("difficulty %d gives %+v, want %d", difficulty, o, want)
		}
	}
	for d, good := range map[int]bool{MinDifficulty - 1: false, MinDifficulty: true, MaxDifficulty: true, MaxDifficulty + 1: false} {
		if _, err := flags.Parse(fmt.Appendf(nil, `{"challenge":{"difficulty":%d}}`, d), nil); (err == nil) != good {
			t.Errorf("flag challenge.difficulty %d: error %v, want valid %t", d, err, good)
		}
	}
}

// rejectedTokens returns invalid tokens by the reason.
func rejectedTokens(t *testing.T) map[string]struct {
	token string
	by    Client
	after time.Duration
	want  error
} {
	p := Issuer{ring(t, newKey), at(noon)}
	o := p.Issue(guest, 12)
	good := Solve(o.Text, 12)
	text, number := good[:strings.LastIndexByte(good, '.')], good[strings.LastIndexByte(good, '.')+1:]
	unsolved := text + ".0"
	for n := 1; countZeroBits(unsolved) != 11; n++ {
		unsolved = fmt.Sprintf("%s.%d", text, n)
	}
	otherKey := Issuer{ring(t, "k2:"+oldKey[3:]), at(noon)}.Issue(guest, 1).Text
	signed := func(text string) string { return text + "." + mac(p.Ring.Active(), text, guest) + ".0" }
	type rejection = struct {
		token string
		by    Client
		after time.Duration
		want  error
	}
	return map[string]rejection{
		"one bit short":             {unsolved, guest, 0, errUnsolved},
		"expired":                   {good, guest, time.Hour, errExpired},
		"too far in the future":     {good, guest, -maxClockSkew - time.Second, errExpired},
		"other fingerprint":         {good, Client{guest.Address, guest.Address}, 0, errWrongClient},
		"other address":             {good, Client{guest.Fingerprint, guest.Fingerprint}, 0, errWrongClient},
		"empty client":              {good, Client{}, 0, errWrongClient},
		"reduced difficulty":        {strings.Replace(good, "pow1.12.", "pow1.1.", 1), guest, 0, errWrongClient},
		"extended expiry":           {strings.Replace(good, ".17", ".19", 1), guest, 0, errWrongClient},
		"unknown key":               {strings.Replace(good, ".k2.", ".k3.", 1), guest, 0, errWrongClient},
		"other key with a known id": {Solve(otherKey, 1), guest, 0, errWrongClient},
		"no nonce":                  {text, guest, 0, errMalformed},
		"empty nonce":               {text + ".", guest, 0, errMalformed},
		"nonce with a sign":         {text + ".+" + number, guest, 0, errMalformed},
		"nonce with a leading zero": {text + ".0" + number, guest, 0, errMalformed},
		"nonce in Arabic digits":    {text + ".٣", guest, 0, errMalformed},
		"nonce too long":            {text + ".12345678901234567", guest, 0, errMalformed},
		"additional part":           {good + ".1", guest, 0, errMalformed},
		"line end":                  {good + "\n", guest, 0, errMalformed},
		"padded":                    {text + "=." + number, guest, 0, errWrongClient},
		"prefix only":               {"pow1.", guest, 0, errMalformed},
		"too long":                  {good + strings.Repeat("1", 4096), guest, 0, errMalformed},
		"signed, other version":     {signed("pow2.1." + fmt.Sprint(noon.Add(puzzleTTL).Unix()) + ".k2"), guest, 0, errMalformed},
		"signed, no difficulty":     {signed("pow1.x." + fmt.Sprint(noon.Add(puzzleTTL).Unix()) + ".k2"), guest, 0, errMalformed},
		"signed, life of two hours": {signed("pow1.1." + fmt.Sprint(noon.Add(2*puzzleTTL).Unix()) + ".k2"), guest, 0, errExpired},
	}
}

func TestIssuerVerify_RejectsInvalidTokens(t *testing.T) {
	t.Parallel()
	for name, c := range rejectedTokens(t) {
		t.Run(name, func(t *testing.T) {
			p := Issuer{ring(t, newKey), at(noon.Add(c.after))}
			if _, err := p.Verify(c.token, c.by); !errors.Is(err, c.want) {
				t.Errorf("error %v, want %v", err, c.want)
			}
		})
	}
}

// A flipped bit of the nonce may give another solution, once in 2^difficulty nonces. For this token
// no flipped bit does.
func TestIssuerVerify_RejectsEveryFlippedBit(t *testing.T) {
	t.Parallel()
	p := Issuer{ring(t, newKey), at(noon)}
	good := Solve(p.Issue(guest, 14).Text, 14)
	if _, err := p.Verify(good, guest); err != nil {
		t.Fatal(err)
	}
	for i := range good {
		for bit := range 8 {
			flipped := []byte(good)
			flipped[i] ^= 1 << bit
			if _, err := p.Verify(string(flipped), guest); err == nil {
				t.Errorf("%q accepted", flipped)
			}
		}
	}
}

func TestLeadingZeros_CountsFromFirstBit(t *testing.T) {
	t.Parallel()
	if n := leadingZeros("abc"); n != 0 { // the SHA-256 begins with ba7816bf
		t.Errorf("abc: %d leading zeros, want 0", n)
	}
	for d := 1; d <= 14; d++ {
		token := Solve("pow1.x", d)
		if n := countZeroBits(token); n < d || n != leadingZeros(token) {
			t.Errorf("difficulty %d: %d leading zeros, want %d", d, leadingZeros(token), n)
		}
	}
}
