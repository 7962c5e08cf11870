package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

const notifiers = 32 // clients

// notify lets clients commit one row each, over and over, with a NOTIFY in the transaction and without.
func notify(ctx context.Context, o Options, url string) error {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return err
	}
	cfg.MaxConns = notifiers + 2
	db, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer db.Close()
	listener, err := db.Acquire(ctx)
	if err != nil {
		return err
	}
	defer listener.Release()
	if _, err := listener.Exec(ctx, "LISTEN outbox"); err != nil {
		return err
	}
	heard, deaf := context.WithCancel(ctx)
	defer deaf()
	go func() {
		for heard.Err() == nil {
			listener.Conn().WaitForNotification(heard)
		}
	}()
	rates := map[bool][]float64{}
	for range o.Rounds {
		for _, with := range []bool{false, true} {
			if err := fill(ctx, db, 0); err != nil {
				return err
			}
			rate, err := commits(ctx, db, o.Round, with)
			if err != nil {
				return err
			}
			rates[with] = append(rates[with], rate)
		}
	}
	for _, r := range rates {
		slices.Sort(r)
	}
	without, with := rates[false][len(rates[false])/2], rates[true][len(rates[true])/2]
	fmt.Fprintf(o.Out, "\n%d clients that commit one outbox row each: %.0f/s; "+
		"with pg_notify in the transaction, and one who listens: %.0f/s (%.2f)\n",
		notifiers, without, with, with/without)
	return nil
}

func commits(ctx context.Context, db *pgxpool.Pool, d time.Duration, with bool) (float64, error) {
	var n atomic.Int64
	var first atomic.Pointer[error]
	var all sync.WaitGroup
	begun := time.Now()
	for range notifiers {
		all.Go(func() {
			for time.Since(begun) < d {
				err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
					if err := outbox.Add(ctx, tx, sample(id.New(id.Session, time.Now()), 1)...); err != nil || !with {
						return err
					}
					_, err := tx.Exec(ctx, "SELECT pg_notify('outbox', '')")
					return err
				})
				if err != nil {
					first.Store(&err)
					return
				}
				n.Add(1)
			}
		})
	}
	all.Wait()
	if err := first.Load(); err != nil {
		return 0, *err
	}
	return float64(n.Load()) / time.Since(begun).Seconds(), nil
}
