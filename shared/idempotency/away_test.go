package idempotency

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

func TestWithoutPostgresNothingIsDone(t *testing.T) {
	h := newHouse(t)
	url, proxy := pgtest.Behind(t)
	away, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer away.Close()
	proxy.Break()
	h.open(away)
	if _, err := h.do(t.Context(), request("k", "a"), work); !is(err, problem.UpstreamUnavailable) {
		t.Errorf("%v", err)
	}
	h.open(h.db)
	if a, err := h.do(t.Context(), request("k", "a"), work); err != nil || a.Replayed {
		t.Errorf("back again: %v", err)
	}
}

// deaf is a connection that hears nothing more from the server once it has asked for a commit.
type deaf struct {
	net.Conn
	asked atomic.Bool
}

func (d *deaf) Write(b []byte) (int, error) {
	if strings.Contains(string(b), "INSERT INTO done") {
		d.asked.Store(true)
	}
	return d.Conn.Write(b)
}

func (d *deaf) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	if d.asked.Load() && err == nil { // the reply came: it is committed, and we do not hear of it
		d.Conn.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

func TestACommitWhoseAnswerIsLostIsFoundAgain(t *testing.T) {
	h := newHouse(t)
	cfg := h.db.Config().Copy()
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // one write, one reply
	dial, first := cfg.ConnConfig.DialFunc, atomic.Bool{}
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err == nil && first.CompareAndSwap(false, true) {
			c = &deaf{Conn: c}
		}
		return c, err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	h.open(pool)
	a, err := h.do(t.Context(), request("k", "a"), work)
	if err != nil || string(a.Body) != odd {
		t.Errorf("%v %s", err, a.Body)
	}
	if n := h.done(); n != 1 {
		t.Errorf("done %d times", n)
	}
}
