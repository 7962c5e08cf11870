package digest

import (
	"bytes"
	"crypto/sha256"
	"testing"
)

func TestFormat_RoundTrip(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("abc"))
	// FIPS 180-2, appendix B.1
	const digits = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
	text := Format(sum[:])
	if text != "sha256:"+digits {
		t.Errorf("got %s, want sha256:%s", text, digits)
	}
	if got, err := Parse(text); err != nil || !bytes.Equal(got, sum[:]) {
		t.Errorf("got %x, %v, want %x", got, err, sum)
	}
	if got := Hex(text); got != digits {
		t.Errorf("got %s, want %s", got, digits)
	}
}

func TestParse_RejectsInvalidText(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "ab", "sha1:ab", "sha256:xy", "sha256:abc", "SHA256:ab"} {
		if sum, err := Parse(s); err == nil {
			t.Errorf("Parse(%q): got %x, want an error", s, sum)
		}
	}
}
