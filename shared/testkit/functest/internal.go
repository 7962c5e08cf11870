package functest

import (
	"context"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/lifecycle"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/oidctest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// UseInternalAPI makes the harness one of internal endpoints: Do and Push take whole paths, such as
// "/internal/jobs/relay", and Send checks responses against the internal OpenAPI document.
func (h *Harness) UseInternalAPI() {
	h.APIDocument, h.BasePath = "../../api/internal.openapi.yaml", ""
}

// MountInternal is Mount for an internal endpoint with its own time budget.
func (h *Harness) MountInternal(pattern string, budget time.Duration, handler web.Handler) {
	h.T.Helper()
	h.MountFunction(web.NewInternal("Test", pattern, budget, func(context.Context, *lifecycle.WarmUp) (web.Handler, error) { return handler, nil }))
}

// MountFunction opens a function, with the harness's log, and serves it at its pattern. It fails
// the test when the function cannot be opened.
func (h *Harness) MountFunction(f *web.Function) {
	h.T.Helper()
	if err := f.OpenWithLog(context.Background(), h.Log); err != nil {
		h.T.Fatal(err)
	}
	h.serve(f)
}

// Issuer signs the ID tokens of service accounts that call internal endpoints.
type Issuer struct {
	*oidctest.Issuer
	KeysURL string // answers with the issuer's key set until the end of the test
}

// issuer is shared by all tests of a binary: making an RSA key takes a tenth of a second.
var issuer = sync.OnceValues(func() (*oidctest.Issuer, error) { return oidctest.New("one") })

// NewIssuer serves the key set of an issuer. All issuers of a test binary have the same key.
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	i, err := issuer()
	if err != nil {
		t.Fatal(err)
	}
	keys := httptest.NewServer(i)
	t.Cleanup(keys.Close)
	return &Issuer{Issuer: i, KeysURL: keys.URL}
}

// Authorization returns the value of the Authorization header of a call by account to audience,
// with an ID token that is valid for an hour from now.
func (i *Issuer) Authorization(audience, account string, now time.Time) string {
	return "Bearer " + i.Token(audience, account, now)
}
