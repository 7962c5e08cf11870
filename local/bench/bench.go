// Package bench owns the comparison of docs/performance.md: the search function beside two handlers that do
// less, each in a process of its own, loaded in turns on one machine. It never claims anything about another
// machine: its ratios are worth something, its rates are not.
package bench

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
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/local/dataset"
	"melmastoon.ghasi.io/bff-consumer/local/sandbox"
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/migrations"
	"melmastoon.ghasi.io/bff-consumer/shared/stores"
)

// house is what the servers stand on.
type house struct {
	dir   string
	env   []string
	rdb   goredis.UniversalClient
	sands *sandbox.Sandbox
	undo  []func()
}

func (h *house) close() {
	for i := len(h.undo) - 1; i >= 0; i-- {
		h.undo[i]()
	}
}

// open starts stores of its own and the sandbox, and writes flags under which nothing is sampled.
func open(ctx context.Context) (_ *house, err error) {
	h := &house{}
	defer func() {
		if err != nil {
			h.close()
		}
	}()
	if h.dir, err = os.MkdirTemp("", "bff-consumer-bench-"); err != nil {
		return nil, err
	}
	h.undo = append(h.undo, func() { os.RemoveAll(h.dir) })
	addr, stop, err := stores.StartRedis(ctx, "", stores.RedisOptions{})
	if err != nil {
		return nil, err
	}
	h.undo = append(h.undo, func() { stop() })
	url, stopPostgres, err := stores.StartPostgres(ctx, "")
	if err != nil {
		return nil, err
	}
	h.undo = append(h.undo, func() { stopPostgres() })
	if err := migrations.Apply(ctx, url); err != nil {
		return nil, err
	}
	h.rdb = keyspace.Open(keyspace.Config{Addr: addr})
	h.undo = append(h.undo, func() { h.rdb.Close() })
	h.sands = sandbox.New(dataset.Embedded(), time.Now)
	urls, stopSands, err := h.sands.Serve()
	if err != nil {
		return nil, err
	}
	h.undo = append(h.undo, stopSands)
	flags := filepath.Join(h.dir, "flags.json")
	if err := os.WriteFile(flags, []byte(`{"sampling":{"search.executed":0},"limitsEnabled":false,"botMode":"off"}`), 0o600); err != nil {
		return nil, err
	}
	var secret [32]byte
	rand.Read(secret[:])
	key := "bench:" + base64.StdEncoding.EncodeToString(secret[:])
	h.env = append(os.Environ(), "ENVIRONMENT=bench", "REDIS_ADDR="+addr, "DATABASE_URL="+url, "UPSTREAM_AUTH=none",
		"SEARCH_URL="+urls["search"], "PRICING_URL="+urls["pricing"], "PROPERTY_URL="+urls["property"], "THEME_URL="+urls["theme"],
		"FLAGS_FILE="+flags, "SESSION_KEYS="+key, "PEPPERS="+key)
	return h, nil
}

// server is one process under load.
type server struct {
	addr string
	cmd  *exec.Cmd
}

// start runs this program again as a server of the kind, with more in its environment.
func (h *house) start(kind string, more ...string) (*server, error) {
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
	s := &server{addr: addr, cmd: exec.Command(self, "bench-server")}
	s.cmd.Env = append(append(h.env[:len(h.env):len(h.env)], "BENCH_KIND="+kind, "PORT="+port), more...)
	s.cmd.Stderr = os.Stderr
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	h.undo = append(h.undo, func() {
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
	return nil, fmt.Errorf("bench: the %s server does not listen", kind)
}

func (h *house) startSearch() (*server, error) { return h.start(search, "FUNCTION_TARGET=Search") }

// request is one search, whole, as bytes. encoding is what the client accepts; where tells searches apart.
func request(cookie, encoding, where string) []byte {
	in := time.Now().UTC().AddDate(0, 0, 20)
	body := fmt.Sprintf(`{"geo":%s,"dates":{"checkIn":%q,"checkOut":%q},"occupancy":{"adults":2,"children":0,"rooms":1}}`,
		where, in.Format(time.DateOnly), in.AddDate(0, 0, 3).Format(time.DateOnly))
	var b strings.Builder
	fmt.Fprintf(&b, "POST /bff/consumer/v1/search HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	fmt.Fprintf(&b, "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\nAccept-Language: ps-AF\r\nX-Currency: AFN\r\n")
	if encoding != "" {
		fmt.Fprintf(&b, "Accept-Encoding: %s\r\n", encoding)
	}
	if cookie != "" {
		fmt.Fprintf(&b, "Cookie: gms_id=%s\r\n", cookie)
	}
	b.WriteString("\r\n" + body)
	return []byte(b.String())
}

const city = `{"mode":"city","city":"Kabul"}`

// warm asks once as a guest without a cookie, and returns the cookie and the key and bytes of the one entry.
func (h *house) warm(ctx context.Context, s *server) (cookie, key string, entry []byte, err error) {
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		return "", "", nil, err
	}
	defer conn.Close()
	if _, err := conn.Write(request("", "gzip", city)); err != nil {
		return "", "", nil, err
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", "", nil, err
	}
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		return "", "", nil, fmt.Errorf("bench: the first search is answered %d: %w", res.StatusCode, err)
	}
	for _, c := range res.Cookies() {
		cookie = c.Value
	}
	keys, err := h.rdb.Keys(ctx, keyspace.Keys{Env: "bench"}.Key("cache", "search", "list", "*")).Result() // a Redis of our own, nearly empty
	if err != nil || len(keys) != 1 {
		return "", "", nil, fmt.Errorf("bench: the first search left %d entries: %w", len(keys), err)
	}
	// The bytes that go out are the reference of handler (a); what lies in Redis, header and index included, that of (b).
	return cookie, keys[0], body, nil
}
