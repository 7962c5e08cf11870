package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
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
)

// relays measures the way out: how fast a backlog is sent, beside plain relays; how long an event takes that is
// committed while the relay waits; and what waking it by NOTIFY would cost those who commit.
func relays(ctx context.Context, o Options, url, redis string) error {
	broker, err := pubsubtest.Start()
	if err != nil {
		return err
	}
	defer broker.Stop()
	for name, value := range map[string]string{
		"ENVIRONMENT": "bench", "DATABASE_URL": url, "REDIS_ADDR": redis,
		"PUBSUB_PROJECT": "bench", "PUBSUB_EMULATOR_HOST": broker.Addr, "RELAY_RUN": "60s",
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
		{"plain SKIP LOCKED relay, batch 500, one request per topic and key, no order",
			func(ctx context.Context) error { return plain.drain(ctx, true) }},
		{"plain SKIP LOCKED relay, batch 500, one request per topic, no key at all",
			func(ctx context.Context) error { return plain.drain(ctx, false) }},
	}
	// What a loaded Postgres did not take in time from those before waits in Redis still.
	if _, err := ours.Run(ctx, relay.Orders{Once: true}); err != nil {
		return err
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
		fmt.Fprintf(t, "%s\t%.0f\t%.2f\t%d\t%.0f\t%.2f\t\n",
			c.name, medians[i], medians[i]/medians[1], requests[i], asking(i), asking(i)/asking(1))
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
			GuestSessionID: session, Kind: "listing-card", TenantID: id.New(id.Tenant, now),
			PropertyID: id.New(id.Property, now), OccurredAt: now,
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
