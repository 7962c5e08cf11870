package session

import (
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
)

var testNow = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func parseRing(t testing.TB, s string) keyring.Ring {
	t.Helper()
	r, err := keyring.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const (
	newKey = "new:QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB"
	oldKey = "old:QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJC"
)

func TestVerifyID_AcceptsIDsOfAnyRingKey(t *testing.T) {
	t.Parallel()
	both, current, other := parseRing(t, newKey+","+oldKey), parseRing(t, newKey), parseRing(t, oldKey)
	minted := mintID(both, testNow)
	if !verifyID(both, minted, testNow) || !verifyID(current, minted, testNow) {
		t.Fatal("an id is rejected by a ring with its key")
	}
	if verifyID(other, minted, testNow) {
		t.Error("an id is accepted by a ring without its key")
	}
	if !verifyID(both, mintID(other, testNow), testNow) {
		t.Error("an id of a retired key is rejected while the key is in the ring")
	}
	if got := id.Time(minted); !got.Equal(testNow) {
		t.Errorf("the id is dated %s, want %s", got, testNow)
	}
}

func TestVerifyID_RejectsForgedIDs(t *testing.T) {
	t.Parallel()
	keys := parseRing(t, newKey)
	minted := mintID(keys, testNow)
	u, err := id.Parse(id.Session, minted)
	if err != nil {
		t.Fatal(err)
	}
	for bit := range len(u) * 8 {
		forged := u
		forged[bit/8] ^= 1 << (bit % 8)
		if verifyID(keys, string(id.Session)+forged.String(), testNow) {
			t.Errorf("the id with bit %d flipped is accepted", bit)
		}
	}
	for range 10_000 {
		chosen := ulid.MustNew(ulid.Timestamp(testNow), rand.Reader)
		if verifyID(keys, string(id.Session)+chosen.String(), testNow) {
			t.Fatalf("a random ULID is accepted: %s", chosen)
		}
	}
	for _, s := range []string{"", "gms_", minted[4:], strings.ToLower(minted), minted + "0", "srs_" + minted[4:], minted + " "} {
		if verifyID(keys, s, testNow) {
			t.Errorf("%q is accepted", s)
		}
	}
}

func TestVerifyID_RejectsFutureAndOldIDs(t *testing.T) {
	t.Parallel()
	keys := parseRing(t, newKey)
	minted := mintID(keys, testNow)
	for name, c := range map[string]struct {
		now  time.Time
		want bool
	}{
		"clock 30 s behind":         {testNow.Add(-30 * time.Second), true},
		"two minutes in the future": {testNow.Add(-2 * time.Minute), false},
		"365 days old":              {testNow.Add(365 * 24 * time.Hour), true},
		"older than 365 days":       {testNow.Add(365*24*time.Hour + time.Second), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verifyID(keys, minted, c.now); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}
