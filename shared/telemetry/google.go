package telemetry

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
)

// authorized adds the token of the account this process runs as, which Google's own collector asks for. Credentials are
// looked for at the first export, which nobody waits for longer than for any other.
type authorized struct {
	next    http.RoundTripper
	project string // that pays

	mu    sync.Mutex
	found *auth.Credentials
}

func (a *authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := a.token(r.Context())
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

func (a *authorized) token(ctx context.Context) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.found == nil {
		found, err := credentials.DetectDefault(&credentials.DetectOptions{Scopes: []string{"https://www.googleapis.com/auth/cloud-platform"}})
		if err != nil {
			return "", err
		}
		a.found = found
	}
	t, err := a.found.Token(ctx)
	if err != nil {
		return "", err
	}
	return t.Value, nil
}
