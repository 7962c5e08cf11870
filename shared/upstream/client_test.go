package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// newTestClient returns a client for the server at base, with a time limit that a busy machine does
// not exceed.
func newTestClient(t *testing.T, base string, tokens TokenSource) *client {
	t.Helper()
	u, err := baseURL(base)
	if err != nil {
		t.Fatal(err)
	}
	transport := NewTransport()
	t.Cleanup(transport.CloseIdleConnections)
	return newClient("upstream", u, policy{timeout: 30 * time.Second}, transport, tokens)
}

func TestFetch_RejectsBodyOverLimit(t *testing.T) {
	t.Parallel()
	fits := `{"value":"good","rest":"` + strings.Repeat("x", maxBody-len(`{"value":"good","rest":""}`)) + `"}`
	for _, c := range []struct {
		name   string
		body   string
		length bool
		reason Reason
	}{
		{"2 MiB", fits, true, ""},
		{"2 MiB in chunks", fits, false, ""},
		{"one byte over", fits + " ", true, BadResponse},
		{"one byte over in chunks", fits + " ", false, BadResponse},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.length {
					w.Header().Set("Content-Length", fmt.Sprint(len(c.body)))
				} else {
					w.(http.Flusher).Flush()
				}
				io.WriteString(w, c.body)
			}))
			defer server.Close()
			if _, err := get(t.Context(), newTestClient(t, server.URL, nil)); ReasonOf(err) != c.reason || err != nil && c.reason == "" {
				t.Errorf("got %v, want reason %q", err, c.reason)
			}
		})
	}
}

func TestFetch_StopsReadingAtLimit(t *testing.T) {
	t.Parallel()
	stopped := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(stopped)
		for chunk := bytes.Repeat([]byte("x"), 64<<10); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	if _, err := get(t.Context(), newTestClient(t, server.URL, nil)); !errors.Is(err, errTooLarge) {
		t.Errorf("got %v, want %v", err, errTooLarge)
	}
	<-stopped
}

func TestFetch_TruncatedBodyIsUnavailable(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	server := httptest.NewServer(countRequests(&calls, respondInOrder(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, `{"value":"good"}`)
	}, respondGood)))
	defer server.Close()
	if _, err := get(t.Context(), newTestClient(t, server.URL, nil)); err != nil || calls.Load() != 2 {
		t.Errorf("got %v after %d requests, want nil after 2", err, calls.Load())
	}
}

func TestFetch_DoesNotFollowRedirects(t *testing.T) {
	t.Parallel()
	var followed atomic.Int32
	target := httptest.NewServer(countRequests(&followed, respondGood))
	defer target.Close()
	for _, code := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.RedirectHandler(target.URL, code))
		_, err := get(t.Context(), newTestClient(t, server.URL, nil))
		server.Close()
		if e, ok := errors.AsType[*Error](err); !ok || e.Reason != BadResponse || e.Status != code {
			t.Errorf("status %d: got %v, want bad-response with the status", code, err)
		}
	}
	if followed.Load() != 0 {
		t.Error("the client followed a redirect")
	}
}

func TestNewTransport_IgnoresProxyEnvironment(t *testing.T) {
	t.Parallel()
	if NewTransport().Proxy != nil {
		t.Error("got a proxy from the environment, which could read the ID tokens")
	}
}

func TestNewTransport_UsesHTTP2WhereOffered(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.ProtoMajor != 2 || string(body) != `{"value":"request"}` {
			t.Errorf("got protocol %s and body %s, want HTTP/2", r.Proto, body)
		}
		respondGood(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	c := newTestClient(t, server.URL, nil)
	c.transport.(*http.Transport).TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
	if _, err := fetch(t.Context(), c, call{path: "/", body: value{"request"}}, func(*value) error { return nil }); err != nil {
		t.Error(err)
	}
}

func TestFetch_ResponseDoesNotAliasBuffer(t *testing.T) {
	t.Parallel()
	type reply struct {
		Value string
		Rest  jsontext.Value
	}
	sent := [2]string{`{"Value":"first","Rest":{"a":1}}`, `{"Value":"other","Rest":{"b":2}}`}
	server := httptest.NewServer(respondInOrder(respondJSON([]byte(sent[0])), respondJSON([]byte(sent[1]))))
	defer server.Close()
	c := newTestClient(t, server.URL, nil)
	first, err := fetch(t.Context(), c, call{path: "/"}, func(*reply) error { return nil })
	fetch(t.Context(), c, call{path: "/"}, func(*reply) error { return nil })
	if err != nil || first.Value != "first" || string(first.Rest) != `{"a":1}` {
		t.Errorf("got %+v, %v, want the first response", first, err)
	}
}

func TestFetch_ReusesConnectionAfterEveryStatus(t *testing.T) {
	t.Parallel()
	var connections atomic.Int32
	long := strings.Repeat("x", maxDrain/2)
	server := httptest.NewUnstartedServer(respondInOrder(
		respondGood, respondStatus(404), respondStatus(400), respondJSON([]byte(`{"value":1}`)), respondJSON([]byte("{")),
		func(w http.ResponseWriter, r *http.Request) { http.Error(w, long, 500) }, respondGood,
	))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	c := newTestClient(t, server.URL, nil)
	for range 6 {
		get(t.Context(), c)
	}
	if _, err := get(t.Context(), c); err != nil || connections.Load() != 1 {
		t.Errorf("got %v over %d connections, want nil over 1", err, connections.Load())
	}
}

// A frozen instance of Cloud Run resumes with dead connections in the pool. This is not a failure
// of the upstream.
func TestFetch_ReplacesDeadPooledConnection(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	served := make(chan struct{})
	serve := func(requests int) {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in := bufio.NewReader(conn)
		for range requests {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			io.Copy(io.Discard, r.Body)
			io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{\"value\":\"good\"}")
		}
		http.ReadRequest(in) // no response to this request
	}
	go func() {
		defer close(served)
		serve(1)
		serve(1)
	}()
	c := newTestClient(t, "http://"+listener.Addr().String(), nil)
	for range 2 {
		_, err := fetch(t.Context(), c, call{path: "/", body: value{}}, func(*value) error { return nil })
		if err != nil {
			t.Error(err)
		}
	}
	if n := c.breaker.Counts(); n.TotalFailures != 0 || n.Requests != 2 {
		t.Errorf("got breaker counts %+v, want 2 requests and no failure", n)
	}
	c.transport.(*http.Transport).CloseIdleConnections()
	<-served
}

type tokenFunc func(ctx context.Context, audience string) (string, error)

func (f tokenFunc) Token(ctx context.Context, audience string) (string, error) {
	return f(ctx, audience)
}

func TestFetch_SendsIDToken(t *testing.T) {
	t.Parallel()
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		respondGood(w, r)
	}))
	defer server.Close()
	tokens := tokenFunc(func(_ context.Context, audience string) (string, error) { return "for " + audience, nil })
	if _, err := get(t.Context(), newTestClient(t, server.URL+"/base/", tokens)); err != nil {
		t.Fatal(err)
	}
	if want := "Bearer for " + server.URL; got != want {
		t.Errorf("got Authorization %q, want %q", got, want)
	}
}

func TestFetch_TokenFailureSendsNothingAndIsNoFault(t *testing.T) {
	t.Parallel()
	var calls, tokenRequests atomic.Int32
	server := httptest.NewServer(countRequests(&calls, respondGood))
	defer server.Close()
	broken := errors.New("metadata server unavailable")
	c := newTestClient(t, server.URL, tokenFunc(func(context.Context, string) (string, error) {
		tokenRequests.Add(1)
		return "", broken
	}))
	for range failuresToOpen {
		if _, err := get(t.Context(), c); ReasonOf(err) != Unavailable || !errors.Is(err, broken) {
			t.Errorf("got %v, want unavailable because of %v", err, broken)
		}
	}
	if calls.Load() != 0 || tokenRequests.Load() != 2*failuresToOpen || c.breaker.Counts().TotalFailures != 0 {
		t.Errorf("got %d requests, %d token requests, breaker counts %+v", calls.Load(), tokenRequests.Load(), c.breaker.Counts())
	}
}

func TestFetch_UnencodableQueryIsInternalError(t *testing.T) {
	t.Parallel()
	c := newTestClient(t, "http://127.0.0.1:1", nil)
	_, err := fetch(t.Context(), c, call{path: "/", body: func() {}}, func(*value) error { return nil })
	if err == nil || ReasonOf(err) != "" {
		t.Errorf("got %v, want an error without a reason", err)
	}
}

func TestNew_ReportsAllBadURLs(t *testing.T) {
	t.Parallel()
	_, err := New(Config{SearchURL: "https://ok.test", PricingURL: "https://[", PropertyURL: "", ThemeURL: "https://u:p@host/"})
	if err == nil {
		t.Fatal("New accepted bad URLs")
	}
	for _, name := range []string{"pricing", "property", "theme"} {
		if !strings.Contains(err.Error(), "upstream: "+name+" url") {
			t.Errorf("got %v, want an error about the %s url", err, name)
		}
	}
	if strings.Contains(err.Error(), "search url") {
		t.Errorf("got %v, want no error about the search url", err)
	}
}

func TestError_NamesUpstreamAndReason(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("search: %w", &Error{Upstream: "pricing", Reason: Unavailable, Status: 503})
	if err.Error() != "search: upstream: pricing: unavailable (status 503)" || ReasonOf(err) != Unavailable || ReasonOf(io.EOF) != "" {
		t.Errorf("got %q with reason %q", err, ReasonOf(err))
	}
	if text := (&Error{Upstream: "theme", Reason: BadResponse, Err: errTooLarge}).Error(); text != "upstream: theme: bad-response: body over 2 MiB" {
		t.Errorf("got %q", text)
	}
}
