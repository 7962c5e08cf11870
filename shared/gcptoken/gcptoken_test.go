package gcptoken

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// metadataServer is a fake of the platform's metadata server. Its tokens are valid for an hour.
type metadataServer struct {
	now func() time.Time

	mu      sync.Mutex
	queries []string
	body    string        // replaces the token response
	status  int           // 0: 200
	block   chan struct{} // not nil: responses wait until it is closed
}

func (m *metadataServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.queries = append(m.queries, r.URL.RawQuery)
	body, status, block, nth := m.body, m.status, m.block, len(m.queries)
	m.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-r.Context().Done():
		}
	}
	if r.Header.Get("Metadata-Flavor") != "Google" {
		http.Error(w, "no flavour", http.StatusForbidden)
		return
	}
	if status != 0 {
		w.WriteHeader(status)
	}
	switch path := strings.TrimPrefix(r.URL.Path, "/computeMetadata/v1/instance/service-accounts/default/"); {
	case body != "":
		io.WriteString(w, body)
	case path == "token":
		fmt.Fprintf(w, `{"access_token":"access-%d","expires_in":3600,"token_type":"Bearer"}`, nth)
	case path == "identity":
		claims := fmt.Sprintf(`{"aud":%q,"exp":%d,"n":%d}`, r.FormValue("audience"), m.now().Add(time.Hour).Unix(), nth)
		io.WriteString(w, "e30."+base64.RawURLEncoding.EncodeToString([]byte(claims))+".sig\n")
	default:
		http.NotFound(w, r)
	}
}

func (m *metadataServer) update(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

func (m *metadataServer) received() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.queries
}

func newTestSource(t *testing.T) (*metadataServer, *Source, *time.Time) {
	t.Helper()
	clock := time.Date(2026, 11, 5, 10, 20, 30, 0, time.UTC)
	now := func() time.Time { return clock }
	m := &metadataServer{now: now}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(server.URL, "http://"))
	return m, newSource(now), &clock
}

func TestSource_CachesPerPurposeUntilNearExpiry(t *testing.T) {
	for name, kind := range map[string]struct {
		get   func(*Source, context.Context, string) (string, error)
		query string
	}{
		"access": {(*Source).AccessToken, "scopes="},
		"ID":     {(*Source).IDToken, "format=full&audience="},
	} {
		t.Run(name, func(t *testing.T) {
			m, tokens, clock := newTestSource(t)
			seen := map[string]bool{}
			for i, c := range []struct {
				advance time.Duration
				purpose string // scope or audience
				fetches int    // so far
			}{
				{0, "a", 1}, {0, "a", 1}, {0, "b", 2}, {0, "a", 2},
				{time.Hour - minRemainingLife - time.Second, "a", 2}, {time.Second, "a", 3}, {0, "a", 3}, {0, "b", 4},
			} {
				*clock = clock.Add(c.advance)
				token, err := kind.get(tokens, t.Context(), c.purpose)
				if err != nil || token == "" || token != strings.TrimSpace(token) {
					t.Fatalf("call %d: token %q, error %v; want a trimmed token", i, token, err)
				}
				if seen[token] = true; len(m.received()) != c.fetches || len(seen) != c.fetches {
					t.Errorf("call %d: %d fetches %q and %d different tokens so far, want %d", i, len(m.received()), m.received(), len(seen), c.fetches)
				}
			}
			if q := m.received()[0]; q != kind.query+"a" {
				t.Errorf("query is %q, want %q", q, kind.query+"a")
			}
		})
	}
}

func TestSource_ConcurrentCallersShareOneFetch(t *testing.T) {
	m, tokens, _ := newTestSource(t)
	m.block = make(chan struct{})
	got := make(chan string, 20)
	for range cap(got) {
		go func() {
			token, _ := tokens.IDToken(t.Context(), "https://a.test")
			got <- token
		}()
	}
	close(m.block)
	first := <-got
	for range cap(got) - 1 {
		if token := <-got; token != first || token == "" {
			t.Errorf("token is %q, want %q as for the first caller", token, first)
		}
	}
	if n := len(m.received()); n != 1 {
		t.Errorf("%d fetches, want 1", n)
	}
}

func TestSource_CallerTimeoutDoesNotCancelSharedFetch(t *testing.T) {
	m, tokens, _ := newTestSource(t)
	m.block = make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if token, err := tokens.AccessToken(ctx, ScopeCloudPlatform); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("AccessToken: %q, %v, want the deadline of the context", token, err)
	}
	close(m.block)
	if token, err := tokens.AccessToken(t.Context(), ScopeCloudPlatform); err != nil || token != "access-1" {
		t.Errorf("AccessToken after the fetch: %q, %v, want access-1", token, err)
	}
}

func TestSource_HangingMetadataServerTimesOut(t *testing.T) {
	m, tokens, _ := newTestSource(t)
	if tokens.fetchTimeout != 2*time.Second {
		t.Errorf("fetchTimeout is %v, want 2s", tokens.fetchTimeout)
	}
	tokens.fetchTimeout = 50 * time.Millisecond
	m.block = make(chan struct{})
	start := time.Now()
	if token, err := tokens.AccessToken(t.Context(), ScopeCloudPlatform); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) < tokens.fetchTimeout {
		t.Errorf("AccessToken: %q, %v after %v, want a deadline after %v", token, err, time.Since(start), tokens.fetchTimeout)
	}
	tokens.fetchTimeout = fetchTimeout
	m.update(func() { m.block = nil })
	if token, err := tokens.AccessToken(t.Context(), ScopeCloudPlatform); err != nil || token == "" {
		t.Errorf("AccessToken after the server recovered: %q, %v, want a token", token, err)
	}
}

func TestSource_FailsWithoutMetadataServer(t *testing.T) {
	t.Setenv("GCE_METADATA_HOST", "127.0.0.1:1")
	tokens := newSource(time.Now)
	tokens.fetchTimeout = 50 * time.Millisecond // the metadata client retries until the deadline
	if token, err := tokens.AccessToken(t.Context(), ScopeCloudPlatform); err == nil {
		t.Errorf("AccessToken: %q, want an error", token)
	}
}

func TestSource_MalformedResponseErrorHidesContent(t *testing.T) {
	m, tokens, _ := newTestSource(t)
	for _, body := range []string{
		"secret", "{}", `{"access_token":"","expires_in":3600}`, `{"access_token":"secret","expires_in":"long"}`,
		"a.b", "a.secret.c", "a." + base64.RawURLEncoding.EncodeToString([]byte("secret")) + ".c", "a.b.c.secret",
	} {
		m.update(func() { m.body = body })
		_, err := tokens.AccessToken(t.Context(), ScopeCloudPlatform)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("AccessToken with response %q: %v, want an error without the response", body, err)
		}
		if _, err = tokens.IDToken(t.Context(), "a"); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("IDToken with response %q: %v, want an error without the response", body, err)
		}
	}
	m.update(func() { m.body, m.status = "", http.StatusNotFound })
	if _, err := tokens.AccessToken(t.Context(), ScopeCloudPlatform); err == nil {
		t.Error("AccessToken accepts status 404, want an error")
	}
	m.update(func() { m.status = 0 })
	if token, err := tokens.AccessToken(t.Context(), ScopeCloudPlatform); err != nil || token == "" {
		t.Errorf("AccessToken after a failure: %q, %v, want a token", token, err)
	}
}

func TestSource_ExpiringTokenIsReturnedButNotReused(t *testing.T) {
	m, tokens, _ := newTestSource(t)
	m.body = `{"access_token":"old","expires_in":1}`
	for range 2 {
		if token, err := tokens.AccessToken(t.Context(), ScopeSQLLogin); err != nil || token != "old" {
			t.Errorf("AccessToken: %q, %v, want old", token, err)
		}
	}
	if n := len(m.received()); n != 2 {
		t.Errorf("%d fetches, want 2", n)
	}
}
