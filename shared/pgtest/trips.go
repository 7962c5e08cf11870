package pgtest

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Trips counts how often a connection waited for an answer to something it had sent.
type Trips struct{ n atomic.Int64 }

// Take is the number of round trips since the last Take.
func (t *Trips) Take() int { return int(t.n.Swap(0)) }

// Counted is as New, with one connection whose round trips are counted, those of its beginning too.
func Counted(t testing.TB) (*pgxpool.Pool, *Trips) {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(URL(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 1
	trips, dial := &Trips{}, cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &counted{Conn: conn, trips: trips}, err
	}
	db, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db, trips
}

type counted struct {
	net.Conn
	trips *Trips
	sent  atomic.Bool
}

func (c *counted) Write(b []byte) (int, error) {
	c.sent.Store(true)
	return c.Conn.Write(b)
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.sent.Swap(false) {
		c.trips.n.Add(1)
	}
	return n, err
}
