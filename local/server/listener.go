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

// startupHandler is the gateway's listener. It refuses everything until the system behind it is there.
type startupHandler struct{ handler atomic.Pointer[http.Handler] }

func (d *startupHandler) setHandlers(front, inside http.Handler) {
	inside = gateway.RejectCrossOrigin(inside)
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, adminapi.Prefix) {
			inside.ServeHTTP(w, r)
			return
		}
		front.ServeHTTP(w, r)
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

const shutdownTimeout = 5 * time.Second // for requests in flight; the budget of each is half of that

// openListener listens on the port and serves a door there.
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

func listen(port int) (net.Listener, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %d of 127.0.0.1 is in use: stop what listens there, or choose another one with --port", port)
	}
	return l, err
}

// serve answers on a listener until stop is called; requests in flight are finished first.
func serve(l net.Listener, h http.Handler) (stop func()) {
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("the listener failed", "err", err.Error())
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
