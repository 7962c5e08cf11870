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
	p := Issuer{ring(t, newKey, oldKey), at(noon)}
	o := p.Issue(guest, 12)
	if o.Difficulty != 12 || !o.Expires.Equal(noon.Add(time.Hour)) {
		t.Errorf("%+v", o)
	}
	token := Solve(o.Text, o.Difficulty)
	for name, now := range map[string]time.Time{"at once": noon, "again, later": noon.Add(59 * time.Minute), "by a clock behind": noon.Add(-maxClockSkew)} {
		p.Now = at(now)
		if expires, err := p.Verify(token, guest); err != nil || !expires.Equal(noon.Add(time.Hour)) {
			t.Errorf("%s: %v, %v", name, expires, err)
		}
	}
	retired := Issuer{ring(t, oldKey), at(noon)}
	before := retired.Issue(guest, 4)
	p.Now = at(noon)
	if _, err := p.Verify(Solve(before.Text, 4), guest); err != nil {
		t.Errorf("by the key before: %v", err)
	}
}

func TestIssuerIssue_SamePuzzleWithinMinute(t *testing.T) {
	p := Issuer{ring(t, newKey), at(noon.Add(time.Second))}
	first := p.Issue(guest, 16)
	p.Now = at(noon.Add(59 * time.Second))
	if p.Issue(guest, 16) != first {
		t.Error("another puzzle within the minute")
	}
	p.Now = at(noon.Add(time.Minute))
	if p.Issue(guest, 16) == first {
		t.Error("the same puzzle for ever")
	}
}

func TestIssuerIssue_ClampsDifficulty(t *testing.T) {
	p := Issuer{ring(t, newKey), at(noon)}
	for asked, want := range map[int]int{-3: 1, 0: 1, 1: 1, 24: 24, 25: 24, 1000: 24} {
		if o := p.Issue(guest, asked); o.Difficulty != want || !strings.HasPrefix(o.Text, fmt.Sprintf("pow1.%d.", want)) {
			t.Errorf("%d became %+v", asked, o)
		}
	}
	for d, good := range map[int]bool{MinDifficulty - 1: false, MinDifficulty: true, MaxDifficulty: true, MaxDifficulty + 1: false} {
		if _, err := flags.Parse(fmt.Appendf(nil, `{"challenge":{"difficulty":%d}}`, d), nil); (err == nil) != good {
			t.Errorf("the flag may be %d, or may not: %v", d, err)
		}
	}
}

// rejectedTokens are tokens that are not taken, by what is wrong with them.
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
	for n := 1; countZeroBits(unsolved) != 11; n++ { // one bit short
		unsolved = fmt.Sprintf("%s.%d", text, n)
	}
	stranger := Issuer{ring(t, "k2:"+oldKey[3:]), at(noon)}.Issue(guest, 1).Text
	signed := func(text string) string { return text + "." + mac(p.Ring.Active(), text, guest) + ".0" }
	type refusal = struct {
		token string
		by    Client
		after time.Duration
		want  error
	}
	return map[string]refusal{
		"one bit short":                      {unsolved, guest, 0, errUnsolved},
		"after its hour":                     {good, guest, time.Hour, errExpired},
		"long before its time":               {good, guest, -maxClockSkew - time.Second, errExpired},
		"by another browser":                 {good, Client{guest.Address, guest.Address}, 0, errWrongClient},
		"from another address":               {good, Client{guest.Fingerprint, guest.Fingerprint}, 0, errWrongClient},
		"from nowhere":                       {good, Client{}, 0, errWrongClient},
		"made easier":                        {strings.Replace(good, "pow1.12.", "pow1.1.", 1), guest, 0, errWrongClient},
		"made to last":                       {strings.Replace(good, ".17", ".19", 1), guest, 0, errWrongClient},
		"signed by a key that is not known":  {strings.Replace(good, ".k2.", ".k3.", 1), guest, 0, errWrongClient},
		"signed by another of the same name": {Solve(stranger, 1), guest, 0, errWrongClient},
		"without a number":                   {text, guest, 0, errMalformed},
		"with an empty number":               {text + ".", guest, 0, errMalformed},
		"with a sign":                        {text + ".+" + number, guest, 0, errMalformed},
		"with a zero before":                 {text + ".0" + number, guest, 0, errMalformed},
		"with digits that are not ours":      {text + ".٣", guest, 0, errMalformed},
		"with a number too long":             {text + ".12345678901234567", guest, 0, errMalformed},
		"with more behind":                   {good + ".1", guest, 0, errMalformed},
		"with a line end":                    {good + "\n", guest, 0, errMalformed},
		"padded":                             {text + "=." + number, guest, 0, errWrongClient},
		"of no form":                         {"pow1.", guest, 0, errMalformed},
		"of any length":                      {good + strings.Repeat("1", 4096), guest, 0, errMalformed},
		"signed, of another version":         {signed("pow2.1." + fmt.Sprint(noon.Add(puzzleTTL).Unix()) + ".k2"), guest, 0, errMalformed},
		"signed, of no difficulty":           {signed("pow1.x." + fmt.Sprint(noon.Add(puzzleTTL).Unix()) + ".k2"), guest, 0, errMalformed},
		"signed, for two hours":              {signed("pow1.1." + fmt.Sprint(noon.Add(2*puzzleTTL).Unix()) + ".k2"), guest, 0, errExpired},
	}
}

func TestIssuerVerify_RejectsInvalidTokens(t *testing.T) {
	for name, c := range rejectedTokens(t) {
		p := Issuer{ring(t, newKey), at(noon.Add(c.after))}
		if _, err := p.Verify(c.token, c.by); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// A bit of the number may make another number, which is another solution one time in 2^difficulty; this token has none.
func TestIssuerVerify_RejectsEveryFlippedBit(t *testing.T) {
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
				t.Errorf("taken: %q", flipped)
			}
		}
	}
}

func TestLeadingZeros_CountsFromFirstBit(t *testing.T) {
	if n := leadingZeros("abc"); n != 0 { // its SHA-256 begins ba7816bf
		t.Errorf("abc: %d", n)
	}
	for d := 1; d <= 14; d++ {
		token := Solve("pow1.x", d)
		if n := countZeroBits(token); n < d || n != leadingZeros(token) {
			t.Errorf("difficulty %d: %d zeros, %d counted", d, n, leadingZeros(token))
		}
	}
}
