package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
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
	backlogSize      = 20_000 // events
	eventsPerSession = 3      // of the backlog
)

// measureRelay measures how fast the relay publishes a backlog, and the delay of an event
// committed while the relay waits.
func measureRelay(ctx context.Context, o options, url, redis string) error {
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
	ours, err := relay.Open(ctx, nil)
	if err != nil {
		return err
	}
	defer ours.Close()
	var taken atomic.Int64
	broker.SetHandler(func(some []pubsubtest.Message) { taken.Add(int64(len(some))) })

	// Publishes the events of earlier benchmarks: Redis buffers events when Postgres is late.
	if _, err := ours.Run(ctx, relay.Options{Once: true}); err != nil {
		return err
	}
	var rates []float64
	var requests int
	for range o.Rounds {
		if err := fillOutbox(ctx, db, backlogSize); err != nil {
			return err
		}
		taken.Store(0)
		before, begun := broker.Requests(), time.Now()
		report, err := ours.Run(ctx, relay.Options{Once: true})
		if err == nil && report.Outages+report.Failures > 0 {
			err = fmt.Errorf("the run had outages or failures: %+v", report)
		}
		if err != nil {
			return fmt.Errorf("bench: relay: %w", err)
		}
		took := time.Since(begun)
		if n := taken.Load(); n != backlogSize {
			return fmt.Errorf("bench: relay: %d of %d events arrived", n, backlogSize)
		}
		rates = append(rates, backlogSize/took.Seconds())
		requests = broker.Requests() - before
	}
	slices.Sort(rates)
	fmt.Fprintf(o.Out, "\nrelay, a backlog of %d events of %d sessions, median of %d rounds: %.0f events/s in %d publish requests\n",
		backlogSize, backlogSize/eventsPerSession, o.Rounds, rates[len(rates)/2], requests)
	return measureLag(ctx, o, db, ours, broker)
}

// sampleEvents returns n events of one session, of two subjects.
func sampleEvents(session string, n int) []event.Event {
	now := time.Now()
	all := make([]event.Event, n)
	for i := range all {
		var p event.Payload = event.ClickRecorded{
			GuestSessionID: session, Kind: "listing-card", TenantID: id.New(id.Tenant, now),
			PropertyID: id.New(id.Property, now), OccurredAt: now,
		}
		if i%eventsPerSession == 1 {
			p = event.LocaleChanged{GuestSessionID: session, PreviousLocale: "en", NewLocale: "ps-AF", Trigger: "user-explicit", OccurredAt: now}
		}
		all[i] = event.New(event.Meta{SessionID: session, RequestID: id.New(id.Request, now), Now: now}, p)
	}
	return all
}

// fillOutbox empties the outbox, adds n events and updates the statistics of the table.
func fillOutbox(ctx context.Context, db *pgxpool.Pool, n int) error {
	if _, err := db.Exec(ctx, "TRUNCATE bff_consumer.outbox"); err != nil {
		return err
	}
	for n > 0 {
		var all []event.Event
		for len(all) < min(n, 500) {
			all = append(all, sampleEvents(id.New(id.Session, time.Now()), min(eventsPerSession, min(n, 500)-len(all)))...)
		}
		n -= len(all)
		if err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error { return outbox.Add(ctx, tx, all...) }); err != nil {
			return err
		}
	}
	_, err := db.Exec(ctx, "ANALYZE bff_consumer.outbox")
	return err
}
