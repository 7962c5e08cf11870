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

// metadataServer is the platform's, with accounts' tokens that last an hour.
type metadataServer struct {
	now func() time.Time

	mu      sync.Mutex
	queries []string
	body    string        // instead of a token
	status  int           // 0: 200
	block   chan struct{} // not nil: an answer waits for its end
}

func (m *metadataServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.queries = append(m.queries, r.URL.RawQuery)
	say, code, hold, nth := m.body, m.status, m.block, len(m.queries)
	m.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}
	if r.Header.Get("Metadata-Flavor") != "Google" {
		http.Error(w, "no flavour", http.StatusForbidden)
		return
	}
	if code != 0 {
		w.WriteHeader(code)
	}
	switch path := strings.TrimPrefix(r.URL.Path, "/computeMetadata/v1/instance/service-accounts/default/"); {
	case say != "":
		io.WriteString(w, say)
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
		asked string
	}{
		"access": {(*Source).AccessToken, "scopes="},
		"ID":     {(*Source).IDToken, "format=full&audience="},
	} {
		t.Run(name, func(t *testing.T) {
			m, tokens, clock := newTestSource(t)
			seen := map[string]bool{}
			for i, c := range []struct {
				pass  time.Duration
				of    string
				asked int
			}{
				{0, "a", 1}, {0, "a", 1}, {0, "b", 2}, {0, "a", 2},
				{time.Hour - minRemainingLife - time.Second, "a", 2}, {time.Second, "a", 3}, {0, "a", 3}, {0, "b", 4},
			} {
				*clock = clock.Add(c.pass)
				token, err := kind.get(tokens, t.Context(), c.of)
				if err != nil || token == "" || token != strings.TrimSpace(token) {
					t.Fatalf("%d: %q, %v", i, token, err)
				}
				if seen[token] = true; len(m.received()) != c.asked || len(seen) != c.asked {
					t.Errorf("%d: asked %q, saw %d tokens", i, m.received(), len(seen))
				}
			}
			if q := m.received()[0]; q != kind.asked+"a" {
				t.Errorf("asked %q", q)
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
			t.Errorf("%q, want %q", token, first)
		}
	}
	if n := len(m.received()); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestSource_CallerTimeoutDoesNotCancelSharedFetch(t *testing.T) {
	m, tokens, _ := newTestSource(t)
	m.block = make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if token, err := tokens.AccessToken(ctx, ScopeCloudPlatform); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("%q, %v", token, err)
	}
	close(m.block)
	if token, err := tokens.AccessToken(t.Context(), ScopeCloudPlatform); err != nil || token != "access-1" {
		t.Errorf("%q, %v", token, err)
	}
}

func TestSource_HangingMetadataServerTimesOut(t *testing.T) {
	m, tokens, _ := newTestSource(t)
	m.block = make(chan struct{})
	began := time.Now()
	if token, err := tokens.AccessToken(t.Context(), ScopeCloudPlatform); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) < fetchTimeout {
		t.Errorf("%q, %v after %v", token, err, time.Since(began))
	}
	m.update(func() { m.block = nil })
	if token, err := tokens.AccessToken(t.Context(), ScopeCloudPlatform); err != nil || token == "" {
		t.Errorf("it answers again: %q, %v", token, err)
	}
}

func TestSource_FailsWithoutMetadataServer(t *testing.T) {
	t.Setenv("GCE_METADATA_HOST", "127.0.0.1:1")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if token, err := newSource(time.Now).AccessToken(ctx, ScopeCloudPlatform); err == nil {
		t.Errorf("%q", token)
	}
}

func TestSource_MalformedResponseErrorHidesContent(t *testing.T) {
	m, tokens, _ := newTestSource(t)
	for _, say := range []string{
		"secret", "{}", `{"access_token":"","expires_in":3600}`, `{"access_token":"secret","expires_in":"long"}`,
		"a.b", "a.secret.c", "a." + base64.RawURLEncoding.EncodeToString([]byte("secret")) + ".c", "a.b.c.secret",
	} {
		m.update(func() { m.body = say })
		_, err := tokens.AccessToken(t.Context(), ScopeCloudPlatform)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("access %q: %v", say, err)
		}
		if _, err = tokens.IDToken(t.Context(), "a"); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("ID %q: %v", say, err)
		}
	}
	m.update(func() { m.body, m.status = "", http.StatusNotFound })
	if _, err := tokens.AccessToken(t.Context(), ScopeCloudPlatform); err == nil {
		t.Error("an account that is not there has a token")
	}
	m.update(func() { m.status = 0 })
	if token, err := tokens.AccessToken(t.Context(), ScopeCloudPlatform); err != nil || token == "" {
		t.Errorf("a failure is remembered: %q, %v", token, err)
	}
}

func TestSource_ExpiringTokenIsReturnedButNotReused(t *testing.T) {
	m, tokens, _ := newTestSource(t)
	m.body = `{"access_token":"old","expires_in":1}`
	for range 2 {
		if token, err := tokens.AccessToken(t.Context(), ScopeSQLLogin); err != nil || token != "old" {
			t.Errorf("%q, %v", token, err)
		}
	}
	if n := len(m.received()); n != 2 {
		t.Errorf("asked %d times", n)
	}
}
