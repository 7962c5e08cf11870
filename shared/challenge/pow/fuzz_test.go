package pow

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"
)

// countZeroBits counts the leading zero bits of the SHA-256 bit by bit, as the documentation
// describes.
func countZeroBits(s string) (n int) {
	for _, b := range sha256.Sum256([]byte(s)) {
		for bit := 7; bit >= 0; bit-- {
			if b>>bit&1 == 1 {
				return n
			}
			n++
		}
	}
	return n
}

// issuable returns nil if a token is a solved puzzle that the key issues for the client and that is
// valid at now. It is an independent implementation, which uses only the constants of the package.
func issuable(token string, secret []byte, keyID string, c Client, now time.Time) error {
	var difficulty int
	var expires int64
	var n uint64
	head, _, _ := strings.Cut(token, "."+keyID+".")
	if _, err := fmt.Sscanf(head, "pow1.%d.%d", &difficulty, &expires); err != nil {
		return err
	}
	message := []byte{}
	for _, part := range []string{"challenge.pow.v1", fmt.Sprintf("pow1.%d.%d.%s", difficulty, expires, keyID), c.Fingerprint, c.Address} {
		message = binary.BigEndian.AppendUint32(message, uint32(len(part)))
		message = append(message, part...)
	}
	h := hmac.New(sha256.New, secret)
	h.Write(message)
	puzzle := fmt.Sprintf("pow1.%d.%d.%s.%s", difficulty, expires, keyID, base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16]))
	rest, ok := strings.CutPrefix(token, puzzle+".")
	if _, err := fmt.Sscanf(rest, "%d", &n); !ok || err != nil || fmt.Sprint(n) != rest {
		return fmt.Errorf("%q is not %q with a nonce", token, puzzle)
	}
	if left := time.Unix(expires, 0).Sub(now); left <= 0 || left > puzzleTTL+maxClockSkew {
		return fmt.Errorf("expires in %v", left)
	}
	if countZeroBits(token) < difficulty {
		return fmt.Errorf("%d leading zero bits, want %d", countZeroBits(token), difficulty)
	}
	return nil
}

// FuzzIssuerVerify_AcceptsOnlyIssuedSolutions: an accepted token is a solved puzzle that the issuer
// issues to the client, and the solution of an issued puzzle is accepted from its client only.
func FuzzIssuerVerify_AcceptsOnlyIssuedSolutions(f *testing.F) {
	keys := ring(f, newKey)
	secret, err := base64.StdEncoding.DecodeString(newKey[3:])
	if err != nil {
		f.Fatal(err)
	}
	p := Issuer{keys, at(noon)}
	for _, d := range []int{1, 8, 12} {
		token := Solve(p.Issue(guest, d).Text, d)
		f.Add(token, guest.Fingerprint, guest.Address, int64(0))
		f.Add(token, guest.Fingerprint, "", int64(3599))
		f.Add(token+"0", guest.Address, guest.Fingerprint, int64(3600))
	}
	f.Add("pow1.1.1795280400.k2.AAAAAAAAAAAAAAAAAAAAAA.0", "", "", int64(-61))
	f.Fuzz(func(t *testing.T, token, fingerprint, address string, seconds int64) {
		c := Client{fingerprint, address}
		now := noon.Add(time.Duration(seconds%100_000) * time.Second)
		p := Issuer{keys, at(now)}
		if _, err := p.Verify(token, c); err == nil {
			if err := issuable(token, secret, "k2", c, now); err != nil {
				t.Errorf("accepted: %v", err)
			}
		}

		o := p.Issue(c, 6)
		good := Solve(o.Text, 6)
		if _, err := p.Verify(good, c); err != nil {
			t.Errorf("solution of the client's puzzle: %v", err)
		}
		if _, err := p.Verify(good, Client{fingerprint + "x", address}); err == nil {
			t.Error("solution accepted from another client")
		}
		if token != good && strings.HasPrefix(token, o.Text) {
			if _, err := p.Verify(token, c); err == nil && countZeroBits(token) < 6 {
				t.Errorf("unsolved token %q accepted", token)
			}
		}
	})
}
