package pgtest

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// RoundTrips counts the round trips of a connection: a reply after at least a write. Safe for
// concurrent use.
type RoundTrips struct{ n atomic.Int64 }

// TakeCount returns the number of round trips since the last TakeCount.
func (t *RoundTrips) TakeCount() int { return int(t.n.Swap(0)) }

// NewCounting is New with a single connection and the count of its round trips, including those of
// connecting.
func NewCounting(t testing.TB) (*pgxpool.Pool, *RoundTrips) {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(URL(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 1
	trips, dial := &RoundTrips{}, cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &countingConn{Conn: conn, trips: trips}, err
	}
	db, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db, trips
}

type countingConn struct {
	net.Conn
	trips         *RoundTrips
	awaitingReply atomic.Bool
}

func (c *countingConn) Write(b []byte) (int, error) {
	c.awaitingReply.Store(true)
	return c.Conn.Write(b)
}

func (c *countingConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.awaitingReply.Swap(false) {
		c.trips.n.Add(1)
	}
	return n, err
}
