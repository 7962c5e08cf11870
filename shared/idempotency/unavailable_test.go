package idempotency

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
)

func TestStoreDo_WithoutPostgresIsUnavailable(t *testing.T) {
	h := newHarness(t)
	url, proxy := pgtest.ProxiedURL(t)
	unavailable, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer unavailable.Close()
	proxy.Break()
	h.newStore(unavailable)
	if _, err := h.do(t.Context(), newRequest("k", "a"), insertRow); !isKind(err, problem.UpstreamUnavailable) {
		t.Errorf("error %v, want UpstreamUnavailable", err)
	}
	h.newStore(h.db)
	if a, err := h.do(t.Context(), newRequest("k", "a"), insertRow); err != nil || a.Replayed {
		t.Errorf("with Postgres again: error %v, replayed %t; want a new response", err, a.Replayed)
	}
}

// lostReplyConn is a connection that closes before it returns the reply to the commit.
type lostReplyConn struct {
	net.Conn
	committed atomic.Bool
}

func (d *lostReplyConn) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "INSERT INTO done") {
		d.committed.Store(true)
	}
	return d.Conn.Write(b)
}

func (d *lostReplyConn) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	if d.committed.Load() && err == nil { // the server has committed; the client does not get the reply
		d.Conn.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

func TestStoreDo_LostCommitReplyIsRecovered(t *testing.T) {
	h := newHarness(t)
	cfg := h.db.Config().Copy()
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // one write, one reply
	dial, first := cfg.ConnConfig.DialFunc, atomic.Bool{}
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err == nil && first.CompareAndSwap(false, true) {
			c = &lostReplyConn{Conn: c}
		}
		return c, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	h.newStore(pool)
	a, err := h.do(t.Context(), newRequest("k", "a"), insertRow)
	if err != nil || string(a.Body) != rawBody {
		t.Errorf("error %v, body %s; want %s", err, a.Body, rawBody)
	}
	if n := h.countRows(); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}
