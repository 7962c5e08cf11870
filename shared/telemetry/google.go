package telemetry

import (
	"fmt"
	"net/http"

	"melmastoon.ghasi.io/bff-consumer/shared/account"
)

// authorized adds the token of the account this process runs as, which Google's own collector asks for. It is fetched at the first
// export, which nobody waits for longer than for any other.
type authorized struct {
	next    http.RoundTripper
	project string // that pays
}

func (a authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := account.Own().Access(r.Context(), account.CloudPlatform)
	if err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, fmt.Errorf("telemetry: token: %w", err)
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	if a.project != "" {
		r.Header.Set("X-Goog-User-Project", a.project)
	}
	return a.next.RoundTrip(r)
}
