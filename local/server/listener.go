package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/adminapi"
	"melmastoon.ghasi.io/bff-consumer/local/gateway"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

// startupHandler serves the gateway's port. It responds 503 with Retry-After: 1 until setHandlers
// is called.
type startupHandler struct{ handler atomic.Pointer[http.Handler] }

// setHandlers sets the handler of the routes under /_local/ and the handler of all other routes.
func (d *startupHandler) setHandlers(public, admin http.Handler) {
	admin = gateway.RejectCrossOrigin(admin)
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, adminapi.Prefix) {
			admin.ServeHTTP(w, r)
			return
		}
		public.ServeHTTP(w, r)
	})
	h = gateway.RequireLocalHost(gateway.AllowLocalOrigins(h))
	d.handler.Store(&h)
}

func (d *startupHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := d.handler.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	gateway.WriteProblem(w, r, problem.New(problem.UpstreamUnavailable, "The local system is starting.", nil).WithRetryAfter(time.Second))
}

const shutdownTimeout = 5 * time.Second // for requests in flight; the budget of a request is half of it

// openListener listens on the gateway's port and serves a startupHandler there.
func (s *Server) openListener(port int) (*startupHandler, error) {
	l, err := listen(port)
	if err != nil {
		return nil, err
	}
	s.URL = "http://" + l.Addr().String()
	d := &startupHandler{}
	s.addCleanup(serve(l, d))
	return d, nil
}

// listen listens on a port of 127.0.0.1; 0 is any free port.
func listen(port int) (net.Listener, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %d of 127.0.0.1 is in use: stop the process that listens there, or choose another port with --port", port)
	}
	return l, err
}

// serve serves h on a listener in the background. stop waits up to 5 s for requests in flight, then
// closes their connections.
func serve(l net.Listener, h http.Handler) (stop func()) {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("server: the listener failed", "err", err.Error())
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
		<-served
	}
}
