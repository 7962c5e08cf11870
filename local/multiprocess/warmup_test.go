package multiprocess

import (
	"bytes"
	"encoding/base64"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/local/servertest"
)

// The test starts functions whose stores close every connection: a function connects to the stores
// that it needs, and serves although they fail.
func TestWarmUp_ConnectsToRequiredStoresBeforeServing(t *testing.T) {
	for function, wants := range map[string]struct{ redis, postgres bool }{
		"Session": {true, true}, "WishlistAdd": {true, true}, "TelemetryClick": {true, true}, "Handoff": {true, true}, "Consume": {false, true},
		"Search": {true, false}, "Detail": {true, false}, "Relay": {true, true},
	} {
		redis, postgres := newClosingStore(t), newClosingStore(t)
		ring := base64.StdEncoding.EncodeToString(make([]byte, 32))
		port := servertest.FreePort(t)
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{
			"FUNCTION_TARGET=" + function, "PORT=" + strconv.Itoa(port), "UPSTREAM_AUTH=none",
			"REDIS_ADDR=" + redis.addr, "DATABASE_URL=postgres://u@" + postgres.addr + "/d?sslmode=disable",
			"SEARCH_URL=http://127.0.0.1:1", "PRICING_URL=http://127.0.0.1:1", "PROPERTY_URL=http://127.0.0.1:1", "THEME_URL=http://127.0.0.1:1",
			"SESSION_KEYS=k1:" + ring, "PEPPERS=p1:" + ring, "HANDOFF_KEYS=hmac-2026-11:" + ring,
			"PUBSUB_PROJECT=p", "PUBSUB_EMULATOR_HOST=127.0.0.1:1", "CALLER_AUDIENCE=https://a.invalid", "CALLER_ACCOUNTS=a@b.invalid",
		}
		var output bytes.Buffer
		cmd.Stdout, cmd.Stderr = &output, &output
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { cmd.Wait(); close(ended) }()
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		err := servertest.WaitListening(addr, ended)
		if err == nil {
			var answer *http.Response
			if answer, err = http.Get("http://" + addr + "/nowhere"); err == nil {
				answer.Body.Close()
			}
		}
		reachedRedis, reachedPostgres := redis.connections.Load() > 0, postgres.connections.Load() > 0
		cmd.Process.Kill()
		<-ended
		if err != nil || reachedRedis != wants.redis || reachedPostgres != wants.postgres {
			t.Errorf("%s: %v, connected to Redis %v, to Postgres %v; want %+v\n%s", function, err, reachedRedis, reachedPostgres, wants, &output)
		}
	}
}

// closingStore is a server that closes every connection.
type closingStore struct {
	addr        string
	connections atomic.Int64
}

// newClosingStore starts a server that counts its connections and closes each at once.
func newClosingStore(t *testing.T) *closingStore {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	s := &closingStore{addr: l.Addr().String()}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.connections.Add(1)
			conn.Close()
		}
	}()
	return s
}
