package otlp

import (
	"fmt"
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/gcptoken"
)

// authTransport adds the access token of the account that this process runs as. Google's collector
// requires the token. The first export fetches it, within that export's time limit.
type authTransport struct {
	next         http.RoundTripper
	quotaProject string // project billed for the calls; "" for the account's own
}

func (a authTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := gcptoken.Default().AccessToken(r.Context(), gcptoken.ScopeCloudPlatform)
	if err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, fmt.Errorf("otlp: token: %w", err)
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	if a.quotaProject != "" {
		r.Header.Set("X-Goog-User-Project", a.quotaProject)
	}
	return a.next.RoundTrip(r)
}
