package keyring

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

const (
	secretA = "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB"
	secretB = "QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJC"
)

func TestRing_FirstKeyIsActiveAllAreFound(t *testing.T) {
	t.Parallel()
	ring, err := Parse("hmac-2026-11:" + secretA + ", hmac-2026-05:" + secretB)
	if err != nil {
		t.Fatal(err)
	}
	if got := ring.Active().ID; got != "hmac-2026-11" {
		t.Errorf("active key %s, want hmac-2026-11", got)
	}
	if _, ok := ring.Find("hmac-2026-05"); !ok {
		t.Error("the older key is not found")
	}
	if _, ok := ring.Find("hmac-2020-01"); ok {
		t.Error("a key that is not in the ring is found")
	}
}

func TestKeySum_DependsOnPurposeAndPartBoundaries(t *testing.T) {
	t.Parallel()
	ring, _ := Parse("a:" + secretA)
	k := ring.Active()
	if bytes.Equal(k.Sum("session", []byte("x")), k.Sum("handoff", []byte("x"))) {
		t.Error("two purposes give the same MAC")
	}
	if bytes.Equal(k.Sum("s", []byte("ab"), []byte("c")), k.Sum("s", []byte("a"), []byte("bc"))) {
		t.Error("moving a byte between parts does not change the MAC")
	}
}

func TestParse_ErrorsDoNotContainSecrets(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty":        "",
		"no colon":     secretA,
		"no id":        ":" + secretA,
		"invalid id":   "a b:" + secretA,
		"short secret": "a:QUFB",
		"not base64":   "a:%%%" + secretA,
		"twice":        "a:" + secretA + ",a:" + secretB,
		"trailing":     "a:" + secretA + ",",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(text)
			if err == nil {
				t.Fatal("accepted")
			}
			if strings.Contains(err.Error(), secretA) {
				t.Errorf("the error contains the secret: %v", err)
			}
		})
	}
}

// The vector is test case 2 of RFC 4231, whose key is too short for a ring.
func TestKeyHMAC_MatchesRFC4231(t *testing.T) {
	t.Parallel()
	k := newKey("", []byte("Jefe"))
	const want = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
	if got := hex.EncodeToString(k.HMAC([]byte("what do ya want for nothing?"))); got != want {
		t.Errorf("HMAC %s, want %s", got, want)
	}
}
