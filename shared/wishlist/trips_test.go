package wishlist

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
)

func TestAMutationIsOneRoundTrip(t *testing.T) {
	d := newDesk(t)
	cfg, err := pgxpool.ParseConfig(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 1
	var trips atomic.Int64
	dial := cfg.ConnConfig.DialFunc
	cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		return &counted{Conn: conn, trips: &trips}, err
	}
	db, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d.Room.db = db
	for n := range 3 {
		before := trips.Load()
		if _, err := d.Add(t.Context(), d.session, wish(n), d.added(wish(n))); err != nil {
			t.Fatal(err)
		}
		added := trips.Load()
		if _, err := d.Remove(t.Context(), d.session, wish(n).PropertyID, d.removed(wish(n).PropertyID)); err != nil {
			t.Fatal(err)
		}
		// The first use on a connection prepares the statements.
		if n > 0 && (added-before != 1 || trips.Load()-added != 1) {
			t.Errorf("add %d, remove %d round trips", added-before, trips.Load()-added)
		}
	}
}

// counted counts how often a connection waited for an answer to something it had sent.
type counted struct {
	net.Conn
	trips *atomic.Int64
	sent  atomic.Bool
}

func (c *counted) Write(b []byte) (int, error) {
	c.sent.Store(true)
	return c.Conn.Write(b)
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 && c.sent.Swap(false) {
		c.trips.Add(1)
	}
	return n, err
}
