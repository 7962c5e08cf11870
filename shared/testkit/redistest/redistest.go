// Package redistest owns the real Redis that tests run against; only tests import it. It never reaches a server
// that somebody else started.
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

// startTimeout is how long a server may take to answer, on a machine busy with other tests.
const startTimeout = 30 * time.Second

// sharedAddr is the server of this test process. Nothing stops it: it ends with the process, by stores' watchdog.
var sharedAddr = sync.OnceValues(func() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	addr, _, err := localstores.StartRedis(ctx, "", localstores.RedisOptions{})
	return addr, err
})

// New is a client of the one server of this test process, emptied of data and scripts. Tests that use it must not
// run in parallel with each other; those that want to take Server.
func New(t testing.TB) redis.UniversalClient {
	t.Helper()
	c := newClient(t, Addr(t))
	flush(t, c)
	return c
}

// Addr is where the server of New listens.
func Addr(t testing.TB) string {
	t.Helper()
	addr, err := sharedAddr()
	if err != nil {
		skipOrFail(t, err)
	}
	return addr
}

// Redis is a server of one test's own, which may be stopped, started, hung and cut off.
type Redis struct {
	Addr string // stays the same over Stop and Start, and goes through the Proxy
	*localstores.Proxy

	t    testing.TB
	dir  string
	port int
	stop func() error
}

// NewServer starts a server for this test alone, empty, and stops it at the test's end.
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

// Client is a new client of this server, closed at the test's end.
func (r *Redis) Client() redis.UniversalClient {
	r.t.Helper()
	return newClient(r.t, r.Addr)
}

// Start starts the server again after a Stop, empty; else it does nothing.
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

// Stop stops the server; from then on connections are cut as soon as they are made.
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

// clientTimeout is far beyond what a healthy server takes, so that a busy machine fails no test. A test of what happens when
// Redis is slow or gone opens its own client at Addr, as the function would.
const clientTimeout = 2 * time.Second

// newClient does what keyspace.Open does but for the breaker and the patience; keyspace's own tests use this package, so it
// cannot use keyspace.
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

// skipOrFail: absent on a laptop means skip, absent in CI means fail; a server that is there and does not start always fails.
func skipOrFail(t testing.TB, err error) {
	t.Helper()
	if _, missing := errors.AsType[localstores.MissingError](err); missing && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	t.Fatal(err)
}
