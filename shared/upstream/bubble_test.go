package upstream

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// bubble runs f in a synctest bubble with a client and a real net/http server, connected through
// in-memory pipes. Time in the bubble is simulated: 1,500 ms take no real time, and measured
// durations are exact.
func bubble(t *testing.T, p policy, server http.HandlerFunc, f func(t *testing.T, c *client, calls *atomic.Int32)) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32
		l := &pipeListener{make(chan net.Conn), make(chan struct{})}
		srv := &http.Server{Handler: countRequests(&calls, server), ErrorLog: log.New(io.Discard, "", 0)}
		go srv.Serve(l)

		transport := NewTransport()
		transport.DialContext = l.dial
		t.Cleanup(func() {
			transport.CloseIdleConnections()
			srv.Close()
		})
		base, err := baseURL("http://upstream.test")
		if err != nil {
			t.Fatal(err)
		}
		f(t, newClient("upstream", base, p, transport, nil), &calls)
	})
}

// pipeListener is an in-memory listener.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	clientEnd, serverEnd := net.Pipe()
	select {
	case l.conns <- serverEnd:
		return clientEnd, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.closed); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{} }

// respondInOrder handles request n with step n, and all further requests with the last step.
func respondInOrder(steps ...http.HandlerFunc) http.HandlerFunc {
	var n atomic.Int32
	return func(w http.ResponseWriter, r *http.Request) {
		steps[min(int(n.Add(1)), len(steps))-1](w, r)
	}
}

func respondGood(w http.ResponseWriter, r *http.Request) {
	respondJSON([]byte(`{"value":"good"}`))(w, r)
}

func hang(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func dropConnection(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }

func respondStatus(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(code)
		io.WriteString(w, `{"title":"no","status":0}`)
	}
}

// value is the response body of the test servers.
type value struct {
	Value string `json:"value"`
}

func get(ctx context.Context, c *client) (string, error) {
	v, err := fetch(ctx, c, call{path: "/value"}, func(v *value) error {
		if v.Value != "good" {
			return errInvalidMandatory
		}
		return nil
	})
	return v.Value, err
}
