// Package redistest starts real Redis servers for tests. Only tests import it. It never connects to
// a server that another process started.
package redistest

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/localstores"
)

// startTimeout is the time for a server to start, on a machine busy with other tests.
const startTimeout = 30 * time.Second

// sharedAddr is the address of this test process's server. The watchdog of localstores stops the
// server at the end of the process.
var sharedAddr = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	addr, _, err := localstores.StartRedis(ctx, "", localstores.RedisOptions{})
	return addr, err
})

// New returns a client of this test process's single server, after removing all data and scripts.
// Tests with New must not run in parallel with each other; parallel tests use NewServer.
func New(t testing.TB) redis.UniversalClient {
	t.Helper()
	c := newClient(t, Addr(t))
	flush(t, c)
	return c
}

// Addr returns the address of the server of New.
func Addr(t testing.TB) string {
	t.Helper()
	addr, err := sharedAddr()
	if err != nil {
		skipOrFail(t, err)
	}
	return addr
}

// Redis is a private server of a test, reached through a Proxy. A test can stop, start, hang and
// break it.
type Redis struct {
	Addr string // address of the Proxy, the same after Stop and Start
	*localstores.Proxy

	t    testing.TB
	dir  string
	port int
	stop func() error
}

// NewServer starts an empty private server and stops it at the end of the test.
func NewServer(t testing.TB) *Redis {
	t.Helper()
	r := &Redis{t: t, dir: t.TempDir()}
	r.Start()
	proxy, err := localstores.NewProxy(net.JoinHostPort("127.0.0.1", strconv.Itoa(r.port)))
	if err != nil {
		t.Fatal(err)
	}
	r.Proxy, r.Addr = proxy, proxy.Addr
	t.Cleanup(func() {
		r.Proxy.Close()
		r.Stop()
	})
	return r
}

// Client returns a new client of this server, closed at the end of the test.
func (r *Redis) Client() redis.UniversalClient {
	r.t.Helper()
	return newClient(r.t, r.Addr)
}

// Start starts an empty server after Stop. It does nothing if the server runs.
func (r *Redis) Start() {
	r.t.Helper()
	if r.stop != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	addr, stop, err := localstores.StartRedis(ctx, r.dir, localstores.RedisOptions{Port: r.port})
	if err != nil {
		skipOrFail(r.t, err)
	}
	_, port, _ := net.SplitHostPort(addr)
	r.port, _ = strconv.Atoi(port)
	r.stop = stop
}

// Stop stops the server. From then on the proxy closes connections at once.
func (r *Redis) Stop() {
	r.t.Helper()
	if r.stop == nil {
		return
	}
	if err := r.stop(); err != nil {
		r.t.Error(err)
	}
	r.stop = nil
}

// clientTimeout is far above the latency of a healthy server, so that no test fails on a busy
// machine. A test of a slow or stopped Redis opens a client of redisclient at Addr.
const clientTimeout = 2 * time.Second

// newClient returns a client like redisclient.Open, but with longer timeouts and without a breaker.
// The tests of redisclient use this package, so this package cannot import redisclient.
func newClient(t testing.TB, addr string) redis.UniversalClient {
	c := redis.NewClient(&redis.Options{
		Addr:                     addr,
		ContextTimeoutEnabled:    true,
		DialTimeout:              clientTimeout,
		ReadTimeout:              clientTimeout,
		WriteTimeout:             clientTimeout,
		PoolTimeout:              clientTimeout,
		MaxRetries:               -1,
		DialerRetries:            1,
		PipelinePoolSize:         -1,
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { c.Close() })
	return c
}

func flush(t testing.TB, c redis.UniversalClient) {
	t.Helper()
	pipe := c.Pipeline()
	pipe.FlushAll(t.Context())
	pipe.ScriptFlush(t.Context())
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatalf("redistest: empty the server: %v", err)
	}
}

// skipOrFail skips the test if Redis is not installed, except in CI, and otherwise fails it.
func skipOrFail(t testing.TB, err error) {
	t.Helper()
	if _, missing := errors.AsType[localstores.MissingError](err); missing && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	t.Fatal(err)
}
