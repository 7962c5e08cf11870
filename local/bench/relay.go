package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/functions/relay"
	"melmastoon.ghasi.io/bff-consumer/functions/relay/pubsubtest"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

const (
	backlog    = 20_000 // events that a relay finds
	perSession = 3      // of them
	lagRate    = 500    // events per second
	lagFor     = 25 * time.Second
	notifiers  = 32
)

// relays measures the way out: how fast a backlog is sent, beside plain relays; how long an event takes that is committed
// while the relay waits; and what waking it by NOTIFY would cost those who commit.
func relays(ctx context.Context, o Options, url, redis string) error {
	broker, err := pubsubtest.Start()
	if err != nil {
		return err
	}
	defer broker.Stop()
	for name, value := range map[string]string{
		"ENVIRONMENT": "bench", "DATABASE_URL": url, "REDIS_ADDR": redis, "PUBSUB_PROJECT": "bench", "PUBSUB_EMULATOR_HOST": broker.Addr, "RELAY_RUN": "60s",
	} {
		os.Setenv(name, value)
	}
	db, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer db.Close()
	ours, err := relay.Open(ctx)
	if err != nil {
		return err
	}
	defer ours.Close()
	plain, err := newPlain(ctx, url)
	if err != nil {
		return err
	}
	defer plain.close()
	var taken atomic.Int64
	broker.Take(func(some []pubsubtest.Arrival) { taken.Add(int64(len(some))) })

	contests := []struct {
		name  string
		drain func(context.Context) error
	}{
		{"relay", func(ctx context.Context) error {
			report, err := ours.Run(ctx, relay.Orders{Once: true})
			if err == nil && report.Outages+report.Failures > 0 {
				err = fmt.Errorf("not a quiet run: %+v", report)
			}
			return err
		}},
		{"plain SKIP LOCKED relay, batch 500, one request per topic and key, no order", func(ctx context.Context) error { return plain.drain(ctx, true) }},
		{"plain SKIP LOCKED relay, batch 500, one request per topic, no key at all", func(ctx context.Context) error { return plain.drain(ctx, false) }},
	}
	rates, requests := make([][]float64, len(contests)), make([]int, len(contests))
	for range o.Rounds {
		for i, c := range contests {
			if err := fill(ctx, db, backlog); err != nil {
				return err
			}
			taken.Store(0)
			before, begun := broker.Requests(), time.Now()
			if err := c.drain(ctx); err != nil {
				return fmt.Errorf("bench: %s: %w", c.name, err)
			}
			took := time.Since(begun)
			if n := taken.Load(); n != backlog {
				return fmt.Errorf("bench: %s: %d of %d events arrived", c.name, n, backlog)
			}
			rates[i] = append(rates[i], backlog/took.Seconds())
			requests[i] = broker.Requests() - before
		}
	}
	fmt.Fprintf(o.Out, "\na backlog of %d events of %d sessions, medians of %d rounds in turns\n\n", backlog, backlog/perSession, o.Rounds)
	t := tabwriter.NewWriter(o.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\tevents/s\tof plain\trequests\trequests/s\tof plain\t")
	medians := make([]float64, len(contests))
	for i := range contests {
		slices.Sort(rates[i])
		medians[i] = rates[i][len(rates[i])/2]
	}
	asking := func(i int) float64 { return medians[i] * float64(requests[i]) / backlog }
	for i, c := range contests {
		fmt.Fprintf(t, "%s\t%.0f\t%.2f\t%d\t%.0f\t%.2f\t\n", c.name, medians[i], medians[i]/medians[1], requests[i], asking(i), asking(i)/asking(1))
	}
	t.Flush()
	if err := lag(ctx, o, db, ours, broker); err != nil {
		return err
	}
	return notify(ctx, o, url)
}

// sample are n events of one session, of two subjects.
func sample(session string, n int) []event.Event {
	now := time.Now()
	all := make([]event.Event, n)
	for i := range all {
		var p event.Payload = event.ClickRecorded{
			GuestSessionID: session, Kind: "listing-card", TenantID: id.New(id.Tenant, now), PropertyID: id.New(id.Property, now), OccurredAt: now,
		}
		if i%perSession == 1 {
			p = event.LocaleChanged{GuestSessionID: session, PreviousLocale: "en", NewLocale: "ps-AF", Trigger: "user-explicit", OccurredAt: now}
		}
		all[i] = event.New(event.Meta{SessionID: session, RequestID: id.New(id.Request, now), Now: now}, p)
	}
	return all
}

// fill empties the outbox and puts n events into it.
func fill(ctx context.Context, db *pgxpool.Pool, n int) error {
	if _, err := db.Exec(ctx, "TRUNCATE bff_consumer.outbox"); err != nil {
		return err
	}
	for n > 0 {
		var all []event.Event
		for len(all) < min(n, 500) {
			all = append(all, sample(id.New(id.Session, time.Now()), min(perSession, min(n, 500)-len(all)))...)
		}
		n -= len(all)
		if err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error { return outbox.Add(ctx, tx, all...) }); err != nil {
			return err
		}
	}
	_, err := db.Exec(ctx, "ANALYZE bff_consumer.outbox")
	return err
}

// lag commits events at a steady rate while a relay runs, and measures from the end of the commit to the broker.
func lag(ctx context.Context, o Options, db *pgxpool.Pool, ours *relay.Relay, broker *pubsubtest.Broker) error {
	if err := fill(ctx, db, 0); err != nil {
		return err
	}
	var mu sync.Mutex
	committed, arrived := map[string]time.Time{}, map[string]time.Time{}
	broker.Take(func(some []pubsubtest.Arrival) {
		mu.Lock()
		defer mu.Unlock()
		for _, a := range some {
			arrived[a.ID] = a.At
		}
	})
	running, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() {
		_, err := ours.Run(running, relay.Orders{})
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
			for i := range int(lagFor.Seconds()) * lagRate / writers {
				<-tick.C
				e := sample(sessions[i%len(sessions)], 1)
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
	fmt.Fprintf(o.Out, "\ndelivery at %.0f events/s, from commit to topic, %d events (%d lost, %d not committed): p50 %s, p99 %s, p99.9 %s, p99.99 %s, max %s\n",
		float64(len(committed))/took.Seconds(), len(lags), len(committed)-len(lags), failed.Load(), at(0.5), at(0.99), at(0.999), at(0.9999), lags[len(lags)-1].Round(100*time.Microsecond))
	return nil
}

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
	fmt.Fprintf(o.Out, "\n%d clients that commit one outbox row each: %.0f/s; with pg_notify in the transaction, and one who listens: %.0f/s (%.2f)\n",
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
