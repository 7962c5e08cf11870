package cache

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
)

const testKey = "test:bff-consumer:cache:search:list:q"

var (
	errCut    = errors.New("connection cut by the test")
	errFill   = errors.New("upstream said no")
	testKeys  = keyspace.Keys{Env: "test"}
	testStart = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
)

// clock is the time of a test, the same for all its caches.
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

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// process is a cache with a client of its own, as another instance would have, and a tap on what it sends.
type process struct {
	*Cache
	tap *tap
}

// newProcess makes one on the Redis at addr. Its jitter is off.
func newProcess(t testing.TB, addr string, clock *clock) *process {
	t.Helper()
	rdb := keyspace.Open(keyspace.Config{Addr: addr})
	t.Cleanup(func() { rdb.Close() })
	p := &process{New(rdb, testKeys, clock.now, t.Name()), &tap{}}
	p.jitter = func() float64 { return 0 }
	rdb.AddHook(p.tap)
	return p
}

// redisAddr is the address of the one Redis of this test process, emptied, and with the scripts known, so that each is
// one step.
func redisAddr(t testing.TB) string {
	t.Helper()
	rdb := redistest.New(t)
	for src := range scripts() {
		if len(src) > 40 { // not a digest
			rdb.ScriptLoad(t.Context(), src)
		}
	}
	return rdb.(*redis.Client).Options().Addr
}

// empty forgets everything but the scripts, between two cases of one test.
func (p *process) empty(t testing.TB) {
	t.Helper()
	p.tap.set(nil, nil)
	if err := insist(t.Context(), func(ctx context.Context) error { return p.rdb.FlushDB(ctx).Err() }); err != nil {
		t.Fatal(err)
	}
}

// tap sees every step a process takes in Redis, by the name of its first script or command, and may hold it up or make
// it fail.
type tap struct {
	mu     sync.Mutex
	before func(step string) error // an error is the step's answer, and it is not sent
	after  func(step string)
}

func (p *tap) set(before func(string) error, after func(string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before, p.after = before, after
}

func (p *tap) pass(cmds []redis.Cmder, send func() error) error {
	p.mu.Lock()
	before, after := p.before, p.after
	p.mu.Unlock()
	name := step(cmds[0])
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

func (p *tap) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (p *tap) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		return p.pass([]redis.Cmder{cmd}, func() error { return next(ctx, cmd) })
	}
}

func (p *tap) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return p.pass(cmds, func() error { return next(ctx, cmds) })
	}
}

// scripts maps what is sent for a script, digest or source, to the script's name.
var scripts = sync.OnceValue(func() map[string]string {
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

func step(cmd redis.Cmder) string {
	switch cmd.Name() {
	case "evalsha", "eval":
		return scripts()[cmd.Args()[1].(string)]
	}
	return cmd.Name()
}

// answer is a Fill that says body.
func answer(t testing.TB, body string, tags ...string) func(context.Context) (Filled, error) {
	return func(context.Context) (Filled, error) { return filled(t, body, tags...), nil }
}

func filled(t testing.TB, body string, tags ...string) Filled {
	e, err := Pack(200, []byte(body), []string{"tnt_a", "tnt_b"}, []byte("index"))
	if err != nil {
		t.Error(err)
	}
	return Filled{Entry: e, Tags: tags}
}

func noFill(t testing.TB) func(context.Context) (Filled, error) {
	return func(context.Context) (Filled, error) {
		t.Error("filled again")
		return Filled{}, errFill
	}
}

// do asks and expects an answer.
func do(t testing.TB, c *Cache, r Recipe) (body string, state State) {
	t.Helper()
	if r.TTL == 0 {
		r.TTL = time.Minute
	}
	e, state, err := c.Do(t.Context(), testKey, nil, r)
	if err != nil {
		t.Errorf("do: %v", err)
		return "", state
	}
	return text(t, e), state
}

func text(t testing.TB, e *Entry) string {
	t.Helper()
	b, err := e.Body()
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// want asks and expects exactly that.
func want(t testing.TB, c *Cache, r Recipe, body string, state State) {
	t.Helper()
	if b, s := do(t, c, r); b != body || s != state {
		t.Fatalf("got %s %q, want %s %q", s, b, state, body)
	}
}
