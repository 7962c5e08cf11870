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
	away, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer away.Close()
	proxy.Break()
	h.newStore(away)
	if _, err := h.do(t.Context(), newRequest("k", "a"), insertRow); !isKind(err, problem.UpstreamUnavailable) {
		t.Errorf("%v", err)
	}
	h.newStore(h.db)
	if a, err := h.do(t.Context(), newRequest("k", "a"), insertRow); err != nil || a.Replayed {
		t.Errorf("back again: %v", err)
	}
}

// lostReplyConn is a connection that hears nothing more from the server once it has asked for a commit.
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
	if d.committed.Load() && err == nil { // the reply came: it is committed, and we do not hear of it
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
		t.Errorf("%v %s", err, a.Body)
	}
	if n := h.countRows(); n != 1 {
		t.Errorf("done %d times", n)
	}
}
