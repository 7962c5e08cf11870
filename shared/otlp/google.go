package otlp

import (
	"fmt"
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/gcptoken"
)

// authTransport adds the token of the account this process runs as, which Google's own collector asks for. It is fetched at the first
// export, which nobody waits for longer than for any other.
type authTransport struct {
	next         http.RoundTripper
	quotaProject string // that pays
}

func (a authTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := gcptoken.Default().AccessToken(r.Context(), gcptoken.ScopeCloudPlatform)
	if err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, fmt.Errorf("telemetry: token: %w", err)
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	if a.quotaProject != "" {
		r.Header.Set("X-Goog-User-Project", a.quotaProject)
	}
	return a.next.RoundTrip(r)
}
