package handoff

import (
	"context"
	"encoding/binary"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// tracedConn is a connection to Postgres that sends one message of the protocol at a time. It calls
// onStep before each message and after each read.
type tracedConn struct {
	net.Conn
	onStep  func(step string)
	started bool // the startup message, which has no type byte, was sent
}

func (w *tracedConn) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		header, kind := 1, string(rest[0])
		if !w.started {
			header, kind, w.started = 0, "startup", true
		}
		size := min(header+int(binary.BigEndian.Uint32(rest[header:])), len(rest))
		w.onStep("send " + kind)
		if _, err := w.Conn.Write(rest[:size]); err != nil {
			return 0, err
		}
		rest = rest[size:]
	}
	return len(b), nil
}

func (w *tracedConn) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if n > 0 {
		w.onStep("read")
	}
	return n, err
}

// tracedPool returns a pool with the configuration of db, an application name, and traced
// connections.
func tracedPool(t testing.TB, db *pgxpool.Pool, name string, before func(step string)) *pgxpool.Pool {
	t.Helper()
	cfg := db.Config().Copy()
	cfg.ConnConfig.RuntimeParams["application_name"] = name
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		return &tracedConn{Conn: c, onStep: before}, err
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func TestHandoffMint_UsesOnePostgresRoundTrip(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	var trips, sent atomic.Int64
	h.Deps.DB = tracedPool(t, h.Deps.DB, "counted", func(step string) {
		if step == "read" {
			if sent.Swap(0) > 0 {
				trips.Add(1)
			}
			return
		}
		sent.Add(1)
	})
	h.mountWithKeys(activeKey)
	guest := h.guestHeaders("k1")
	// a connection prepares each statement once
	h.mustMint(h.requestBody(), guest[0], guest[1], "Idempotency-Key", "k0")
	trips.Store(0)
	h.RoundTrips.TakeCount()
	h.mustMint(h.requestBody(), guest...)
	if n := trips.Load(); n != 1 {
		t.Errorf("got %d round trips of Postgres; want 1", n)
	}
	if n := h.RoundTrips.TakeCount(); n != 2 { // Begin with the claim, Finish with the copy
		t.Errorf("got %d round trips of Redis; want 2", n)
	}
	trips.Store(0)
	h.mustMint(h.requestBody(), guest...)
	if n := trips.Load(); n != 0 {
		t.Errorf("got %d round trips for a repetition; want 0", n)
	}
}
