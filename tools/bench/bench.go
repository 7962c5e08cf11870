package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/local/sandbox"
	"melmastoon.ghasi.io/bff-consumer/local/tenantstub"
	"melmastoon.ghasi.io/bff-consumer/shared/migrations"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/localstores"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/oidctest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// environment has the private stores, the sandbox upstreams and the environment variables of the
// servers under load.
type environment struct {
	dir       string // temporary
	url       string // of the database
	redisAddr string
	env       []string // of the servers under load
	rdb       goredis.UniversalClient
	db        *pgxpool.Pool
	sandbox   *sandbox.Sandbox
	data      *dataset.Dataset
	cleanup   []func()

	handoffKeys string
	issuer      *oidctest.Issuer // of the callers of Consume
}

func (h *environment) close() {
	for _, undo := range slices.Backward(h.cleanup) {
		undo()
	}
}

// setUp starts private stores and the sandbox upstreams, and turns off sampling of search events,
// rate limits and bot detection. Postgres waits for its disk at each commit, as on the platform,
// unless volatile is set.
func setUp(ctx context.Context, volatile bool) (_ *environment, err error) {
	h := &environment{}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	if h.dir, err = os.MkdirTemp("", "bff-consumer-bench-"); err != nil {
		return nil, err
	}
	h.cleanup = append(h.cleanup, func() { os.RemoveAll(h.dir) })
	addr, stop, err := localstores.StartRedis(ctx, "", localstores.RedisOptions{})
	if err != nil {
		return nil, err
	}
	h.cleanup = append(h.cleanup, func() { stop() })
	url, stopPostgres, err := localstores.StartPostgres(ctx, "", localstores.PostgresOptions{Durable: !volatile})
	if err != nil {
		return nil, err
	}
	h.cleanup = append(h.cleanup, func() { stopPostgres() })
	h.url, h.redisAddr = url, addr
	if err := migrations.Apply(ctx, url); err != nil {
		return nil, err
	}
	h.rdb = redisclient.Open(redisclient.Config{Addr: addr})
	h.cleanup = append(h.cleanup, func() { h.rdb.Close() })
	if h.db, err = postgres.Open(ctx, postgres.Config{URL: url}); err != nil {
		return nil, err
	}
	h.cleanup = append(h.cleanup, h.db.Close)
	h.data = dataset.Embedded()
	h.sandbox = sandbox.New(h.data, time.Now)
	urls, stopSands, err := h.sandbox.Serve()
	if err != nil {
		return nil, err
	}
	h.cleanup = append(h.cleanup, stopSands)
	flags := filepath.Join(h.dir, "flags.json")
	if err := os.WriteFile(flags, []byte(`{"sampling":{"search.executed":0},"limitsEnabled":false,"botMode":"off"}`), 0o600); err != nil {
		return nil, err
	}
	var secret [32]byte
	rand.Read(secret[:])
	key := base64.StdEncoding.EncodeToString(secret[:])
	h.handoffKeys = "hmac-2026-01:" + key
	if h.issuer, err = oidctest.New("bench"); err != nil {
		return nil, err
	}
	callers := filepath.Join(h.dir, "caller-keys.json")
	if err := os.WriteFile(callers, h.issuer.KeySet(), 0o600); err != nil {
		return nil, err
	}
	h.env = append(os.Environ(), "ENVIRONMENT=bench", "REDIS_ADDR="+addr, "DATABASE_URL="+url, "UPSTREAM_AUTH=none",
		"SEARCH_URL="+urls["search"], "PRICING_URL="+urls["pricing"], "PROPERTY_URL="+urls["property"], "THEME_URL="+urls["theme"],
		"FLAGS_FILE="+flags, "SESSION_KEYS=bench:"+key, "PEPPERS=bench:"+key, "HANDOFF_KEYS="+h.handoffKeys,
		"CALLER_ISSUER="+oidctest.IssuerURL, "CALLER_KEYS="+callers, "CALLER_AUDIENCE="+tenantstub.Audience, "CALLER_ACCOUNTS="+tenantstub.Account)
	return h, nil
}

// server is a process under load.
type server struct {
	addr string
	cmd  *exec.Cmd
}

// start runs this program again as a server of a kind, with further environment variables. It waits
// at most 5 s until the server listens.
func (h *environment) start(kind string, more ...string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	l.Close()
	s := &server{addr: addr, cmd: exec.Command(self, childVerb)}
	s.cmd.Env = append(append(h.env[:len(h.env):len(h.env)], "BENCH_KIND="+kind, "PORT="+port), more...)
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	h.cleanup = append(h.cleanup, func() {
		s.cmd.Process.Kill()
		s.cmd.Wait()
	})
	for range 200 {
		if conn, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
			conn.Close()
			return s, nil
		}
		time.Sleep(25 * time.Millisecond)
	}
	return nil, fmt.Errorf("bench: the %s server does not listen after 5s", kind)
}

func (h *environment) startFunction(name string) (*server, error) {
	return h.start(kindFunction, "FUNCTION_TARGET="+name)
}

// request returns the bytes of an HTTP request. more are names and values of further headers.
func request(method, path, body string, more ...string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: bench\r\n", method, path)
	if body != "" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	b.WriteString("User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\n")
	b.WriteString("Accept-Language: ps-AF\r\nX-Currency: AFN\r\n")
	for i := 0; i < len(more); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", more[i], more[i+1])
	}
	b.WriteString("\r\n" + body)
	return []byte(b.String())
}

// searchRequest returns a search; where is its geo object.
func searchRequest(where string, headers ...string) []byte {
	return request("POST", web.BasePath+"/search", `{"geo":`+where+`,`+stayFields()+`}`, headers...)
}

// stayFields returns the members of a body that name the stay of all guests: 2 adults, 3 nights
// from 20 days ahead.
func stayFields() string {
	in := time.Now().UTC().AddDate(0, 0, 20)
	return fmt.Sprintf(`"dates":{"checkIn":%q,"checkOut":%q},"occupancy":{"adults":2,"children":0,"rooms":1}`,
		in.Format(time.DateOnly), in.AddDate(0, 0, 3).Format(time.DateOnly))
}

const cityGeo = `{"mode":"city","city":"Kabul"}`

// do sends one request over a connection of its own. It returns the response's body and its cookie
// in the form of a Cookie header. A status of 300 and more is an error.
func (s *server) do(request []byte) (cookie string, body []byte, err error) {
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		return "", nil, err
	}
	defer conn.Close()
	if _, err := conn.Write(request); err != nil {
		return "", nil, err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", nil, err
	}
	defer res.Body.Close()
	body, err = io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 300 {
		return "", nil, fmt.Errorf("bench: the first request got %d %s: %w", res.StatusCode, body, err)
	}
	for _, c := range res.Cookies() {
		cookie = c.Name + "=" + c.Value
	}
	return cookie, body, nil
}

// warmCache sends the first search, as a guest without a cookie. It returns the guest's cookie, the
// Redis key of the cache entry and the bytes of the response.
func (h *environment) warmCache(ctx context.Context, s *server) (cookie, key string, entry []byte, err error) {
	cookie, entry, err = s.do(searchRequest(cityGeo, "Accept-Encoding", "gzip"))
	if err != nil {
		return "", "", nil, err
	}
	// private and nearly empty, so KEYS is cheap
	keys, err := h.rdb.Keys(ctx, redisclient.Keys{Env: "bench"}.Key("cache", "search", "list", "*")).Result()
	if err != nil || len(keys) != 1 {
		return "", "", nil, fmt.Errorf("bench: the first search left %d entries: %w", len(keys), err)
	}
	// Reference (a) writes the bytes of the response; reference (b) writes the value in Redis,
	// which also has a header and an index.
	return cookie, keys[0], entry, nil
}
