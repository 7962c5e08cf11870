package cache

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"flag"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

const testKey = "test:bff-consumer:cache:search:list:q"

var (
	errCut    = errors.New("connection cut by the test")
	errLoad   = errors.New("load failed in the test")
	testKeys  = redisclient.Keys{Env: "test"}
	testStart = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
)

// clock is the clock of all caches of a test.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: testStart} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// process is a cache with its own client, like another instance, and an interceptor of the traffic
// to Redis.
type process struct {
	*Cache
	interceptor *interceptor
}

// newProcess returns a process with the Redis at addr and without jitter.
func newProcess(t testing.TB, addr string, clock *clock) *process {
	t.Helper()
	rdb := redisclient.Open(redisclient.Config{Addr: addr})
	t.Cleanup(func() { rdb.Close() })
	p := &process{New(rdb, testKeys, clock.now, t.Name()), &interceptor{}}
	p.jitter = func() float64 { return 0 }
	rdb.AddHook(p.interceptor)
	return p
}

// redisAddr returns the address of the shared Redis of this test process, empty and with all
// scripts loaded. Tests with this Redis do not run in parallel.
func redisAddr(t testing.TB) string {
	t.Helper()
	rdb := redistest.New(t)
	loadScripts(t, rdb)
	return rdb.(*redis.Client).Options().Addr
}

// TestMain lets more tests run in parallel than there are processors: parallel tests of this
// package mostly wait.
func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "16")
	os.Exit(m.Run())
}

// ownRedisAddr returns the address of a Redis only for this test, with all scripts loaded. Tests
// that wait in real time use an own Redis and run in parallel.
func ownRedisAddr(t testing.TB) string {
	t.Helper()
	server := redistest.NewServer(t)
	loadScripts(t, server.Client())
	return server.Addr
}

// loadScripts loads all scripts, so that the server never answers NOSCRIPT and each script call is
// a single step.
func loadScripts(t testing.TB, rdb redis.UniversalClient) {
	t.Helper()
	for src := range scriptNames() {
		if len(src) == 2*sha1.Size {
			continue // a digest
		}
		if err := rdb.ScriptLoad(t.Context(), src).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// flush deletes all keys, but not the scripts, between two cases of a test.
func (p *process) flush(t testing.TB) {
	t.Helper()
	p.interceptor.set(nil, nil)
	if err := retryRedis(t.Context(), func(ctx context.Context) error { return p.rdb.FlushDB(ctx).Err() }); err != nil {
		t.Fatal(err)
	}
}

// interceptor is a client hook around every step of a process in Redis, named by the first script
// or command. It can delay or fail a step.
type interceptor struct {
	mu     sync.Mutex
	before func(step string) error // an error replaces the reply, and the step is not sent
	after  func(step string)
}

func (p *interceptor) set(before func(string) error, after func(string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before, p.after = before, after
}

func (p *interceptor) intercept(cmds []redis.Cmder, send func() error) error {
	p.mu.Lock()
	before, after := p.before, p.after
	p.mu.Unlock()
	name := stepName(cmds[0])
	if before != nil {
		if err := before(name); err != nil {
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
			return err
		}
	}
	err := send()
	if after != nil {
		after(name)
	}
	return err
}

func (p *interceptor) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (p *interceptor) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return p.intercept([]redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

func (p *interceptor) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return p.intercept(cmds, func() error { return next(ctx, cmds) })
	}
}

// scriptNames maps the digest and the source of each script to the name of the script.
var scriptNames = sync.OnceValue(func() map[string]string {
	files, err := filepath.Glob("../lua/*.lua")
	if err != nil || len(files) == 0 {
		panic("no scripts")
	}
	names := map[string]string{}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		digest := sha1.Sum(src)
		name := strings.TrimSuffix(filepath.Base(file), ".lua")
		names[hex.EncodeToString(digest[:])], names[string(src)] = name, name
	}
	return names
})

func stepName(cmd redis.Cmder) string {
	switch cmd.Name() {
	case "evalsha", "eval":
		return scriptNames()[cmd.Args()[1].(string)]
	}
	return cmd.Name()
}

// loadBody returns a load function with the given body and tags.
func loadBody(t testing.TB, body string, tags ...string) func(context.Context) (Loaded, error) {
	return func(context.Context) (Loaded, error) { return newLoaded(t, body, tags...), nil }
}

func newLoaded(t testing.TB, body string, tags ...string) Loaded {
	e, err := NewEntry(200, []byte(body), []string{"tnt_a", "tnt_b"}, []byte("index"))
	if err != nil {
		t.Error(err)
	}
	return Loaded{Entry: e, Tags: tags}
}

func unexpectedLoad(t testing.TB) func(context.Context) (Loaded, error) {
	return func(context.Context) (Loaded, error) {
		t.Error("unexpected load")
		return Loaded{}, errLoad
	}
}

// mustLoad calls GetOrLoad and returns body and state. An error fails the test.
func mustLoad(t testing.TB, c *Cache, r Loader) (body string, state State) {
	t.Helper()
	if r.TTL == 0 {
		r.TTL = time.Minute
	}
	e, state, err := c.GetOrLoad(t.Context(), testKey, nil, r)
	if err != nil {
		t.Errorf("GetOrLoad: %v", err)
		return "", state
	}
	return bodyText(t, e), state
}

func bodyText(t testing.TB, e *Entry) string {
	t.Helper()
	b, err := e.Body()
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// expectLoad calls GetOrLoad and compares body and state.
func expectLoad(t testing.TB, c *Cache, r Loader, body string, state State) {
	t.Helper()
	if b, s := mustLoad(t, c, r); b != body || s != state {
		t.Fatalf("got %s %q, want %s %q", s, b, state, body)
	}
}
