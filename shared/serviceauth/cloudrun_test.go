package serviceauth

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
)

// Cloud Run checks a token of its own in X-Serverless-Authorization, or for want of one that in Authorization, and
// passes the token that it checked without its signature.
func TestVerifierVerify_RejectsSignatureRemovedByCloudRun(t *testing.T) {
	p := newHarness(t)
	whole := p.Token(audience, account, noon)
	bare := whole[:strings.LastIndex(whole, ".")+1] + "SIGNATURE_REMOVED_BY_GOOGLE"
	for name, c := range map[string]struct {
		authorization, serverless string
		ok                        bool
	}{
		"one token, which the platform checked":  {"Bearer " + bare, "", false},
		"the platform's, and one for here":       {"Bearer " + whole, "Bearer " + bare, true},
		"the platform's alone":                   {"", "Bearer " + bare, false},
		"the platform's alone, with a signature": {"", "Bearer " + whole, false},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		for header, value := range map[string]string{"Authorization": c.authorization, "X-Serverless-Authorization": c.serverless} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		_, err := p.verifier.Verify(r)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrNotAllowed) {
			t.Errorf("%s: %v", name, err)
		}
		if c.authorization == "Bearer "+bare && !strings.Contains(err.Error(), "X-Serverless-Authorization") {
			t.Errorf("the log does not say what to do: %v", err)
		}
	}
}
