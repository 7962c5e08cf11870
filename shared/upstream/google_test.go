package upstream

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
	"sync/atomic"
	"testing"
	"time"
)

// metadata is Google's metadata server as far as ID tokens need it. The library asks its address once per process,
// so one test does everything.
type metadata struct {
	asked atomic.Int32
	down  atomic.Bool
	hold  chan struct{} // a request waits until it is closed
}

func (m *metadata) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/service-accounts/default/identity") {
		return
	}
	m.asked.Add(1)
	if m.down.Load() {
		http.Error(w, "no such account", http.StatusNotFound)
		return
	}
	<-m.hold
	claims := fmt.Sprintf(`{"aud":%q,"exp":%d}`, r.URL.Query().Get("audience"), time.Now().Add(time.Hour).Unix())
	io.WriteString(w, "e30."+base64.RawURLEncoding.EncodeToString([]byte(claims))+".sig")
}

func TestGoogleTokens(t *testing.T) {
	meta := &metadata{hold: make(chan struct{})}
	server := httptest.NewServer(meta)
	defer server.Close()
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(server.URL, "http://"))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	var g Google

	meta.down.Store(true)
	if _, err := g.Token(t.Context(), "https://a.test"); err == nil {
		t.Fatal("a token without a metadata server")
	}
	meta.down.Store(false)
	meta.asked.Store(0)

	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := g.Token(gone, "https://a.test"); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that left waits: %v", err)
	}

	var wg sync.WaitGroup
	tokens := make([]string, 20)
	for i := range tokens {
		wg.Go(func() { tokens[i], _ = g.Token(t.Context(), "https://a.test") })
	}
	close(meta.hold)
	wg.Wait()
	for _, token := range tokens {
		if token == "" || token != tokens[0] {
			t.Errorf("%q, want %q", token, tokens[0])
		}
	}
	if n := meta.asked.Load(); n != 1 {
		t.Errorf("one audience was asked for %d times", n)
	}

	other, err := g.Token(t.Context(), "https://b.test")
	if err != nil || other == tokens[0] || meta.asked.Load() != 2 {
		t.Errorf("another audience: %q %v after %d requests", other, err, meta.asked.Load())
	}
}
