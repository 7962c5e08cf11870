package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/functions/relay"
	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

const (
	lagRate     = 500 // events per second
	lagDuration = 25 * time.Second
)

// measureLag commits lagRate events a second for lagDuration while a relay runs, and measures the
// time from the end of a commit to the arrival of its event at the broker. It waits at most 10 s
// for the last events.
func measureLag(ctx context.Context, o options, db *pgxpool.Pool, ours *relay.Relay, broker *pubsubtest.Broker) error {
	if err := fillOutbox(ctx, db, 0); err != nil {
		return err
	}
	var mu sync.Mutex
	committed, arrived := map[string]time.Time{}, map[string]time.Time{}
	broker.SetHandler(func(some []pubsubtest.Message) {
		mu.Lock()
		defer mu.Unlock()
		for _, a := range some {
			arrived[a.ID] = a.ReceivedAt
		}
	})
	running, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() {
		_, err := ours.Run(running, relay.Options{})
		done <- err
	}()
	const writers = 10
	var all sync.WaitGroup
	var failed atomic.Int64
	for range writers {
		all.Go(func() {
			tick := time.NewTicker(time.Second * writers / lagRate)
			defer tick.Stop()
			sessions := make([]string, 50)
			for i := range sessions {
				sessions[i] = id.New(id.Session, time.Now())
			}
			for i := range int(lagDuration.Seconds()) * lagRate / writers {
				<-tick.C
				e := sampleEvents(sessions[i%len(sessions)], 1)
				if err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error { return outbox.Add(ctx, tx, e...) }); err != nil {
					failed.Add(1)
					continue
				}
				now := time.Now()
				mu.Lock()
				committed[e[0].ID] = now
				mu.Unlock()
			}
		})
	}
	begun := time.Now()
	all.Wait()
	took := time.Since(begun)
	for wait := time.Now().Add(10 * time.Second); time.Now().Before(wait); time.Sleep(50 * time.Millisecond) {
		mu.Lock()
		missing := len(committed) - len(arrived)
		mu.Unlock()
		if missing <= 0 {
			break
		}
	}
	stop()
	if err := <-done; err != nil {
		return err
	}
	mu.Lock()
	defer mu.Unlock()
	var lags []time.Duration
	for id, at := range committed {
		if there, ok := arrived[id]; ok {
			lags = append(lags, max(0, there.Sub(at)))
		}
	}
	if len(lags) == 0 {
		return errors.New("bench: no event arrived")
	}
	slices.Sort(lags)
	at := func(q float64) time.Duration {
		return lags[min(len(lags)-1, int(q*float64(len(lags))))].Round(100 * time.Microsecond)
	}
	fmt.Fprintf(o.Out, "\ndelivery at %.0f events/s, from commit to topic, %d events (%d lost, %d not committed): ",
		float64(len(committed))/took.Seconds(), len(lags), len(committed)-len(lags), failed.Load())
	fmt.Fprintf(o.Out, "p50 %s, p99 %s, p99.9 %s, p99.99 %s, max %s\n", at(0.5), at(0.99), at(0.999), at(0.9999), at(1))
	return nil
}
