package serviceauth

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
)

// Cloud Run verifies the token in X-Serverless-Authorization or, without that header, in
// Authorization. It removes the signature of the token that it verified.
func TestVerifierVerify_RejectsSignatureRemovedByCloudRun(t *testing.T) {
	t.Parallel()
	p := newHarness(t)
	whole := p.Token(audience, account, noon)
	bare := whole[:strings.LastIndex(whole, ".")+1] + "SIGNATURE_REMOVED_BY_GOOGLE"
	for name, c := range map[string]struct {
		authorization, serverless string
		ok                        bool
	}{
		"only token, verified by Cloud Run":              {"Bearer " + bare, "", false},
		"token for Cloud Run and token for the function": {"Bearer " + whole, "Bearer " + bare, true},
		"token for Cloud Run only":                       {"", "Bearer " + bare, false},
		"token for Cloud Run only, with signature":       {"", "Bearer " + whole, false},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		for header, value := range map[string]string{"Authorization": c.authorization, "X-Serverless-Authorization": c.serverless} {
			if value != "" {
				r.Header.Set(header, value)
			}
		}
		_, err := p.verifier.Verify(r)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrNotAllowed) {
			t.Errorf("%s: Verify: %v, want accepted: %v", name, err, c.ok)
		}
		if c.authorization == "Bearer "+bare && !strings.Contains(err.Error(), "X-Serverless-Authorization") {
			t.Errorf("Verify: %v, want an error that names X-Serverless-Authorization", err)
		}
	}
}
