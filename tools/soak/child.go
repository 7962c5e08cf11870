package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/functions/relay"
	"melmastoon.ghasi.io/bff-consumer/shared/event"
	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

// childVerb starts this program as a process of a trial.
const childVerb = "soak-child"

const (
	goroutinesPerWriter  = 8   // concurrent
	sessionsPerGoroutine = 125 // exclusive to the goroutine, so that the commits of a session have one order
	rollbackShare        = 0.1 // of the mutations
)

// runChild runs a writer or a relay, as SOAK_CHILD says. It ends when the process is killed, or
// when stdin closes because the parent process is gone.
func runChild(ctx context.Context) error {
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	if os.Getenv("SOAK_CHILD") == "relay" {
		return runRelay(ctx)
	}
	return runWriter(ctx)
}

// runRelay runs the relay again and again, as if the scheduler triggered it without pause.
func runRelay(ctx context.Context) error {
	r, err := relay.Open(ctx, nil)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if _, err := r.Run(ctx, relay.Options{}); err != nil {
			fmt.Fprintln(os.Stderr, "soak: relay:", err)
		}
	}
	return nil
}

// runWriter commits events at the writer's share of the rate. A restarted writer uses the sessions
// of its predecessor.
func runWriter(ctx context.Context) error {
	number := os.Getenv("SOAK_NUMBER")
	rate, err := strconv.Atoi(os.Getenv("SOAK_RATE"))
	if err != nil || rate < goroutinesPerWriter {
		return fmt.Errorf("soak: SOAK_RATE is %q", os.Getenv("SOAK_RATE"))
	}
	cfg, err := pgxpool.ParseConfig(os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	name := "soak-writer-" + number
	cfg.MaxConns = goroutinesPerWriter
	db, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	// Commits of the killed predecessor may still be under way in Postgres. They must come first,
	// or the order of a session would be wrong.
	for {
		var others int
		err := db.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE application_name = $1`, name).Scan(&others)
		if err != nil {
			return err
		}
		if others == 0 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	db.Close()
	cfg.ConnConfig.RuntimeParams["application_name"] = name
	if db, err = pgxpool.NewWithConfig(ctx, cfg); err != nil {
		return err
	}
	var all sync.WaitGroup
	for worker := range goroutinesPerWriter {
		all.Go(func() {
			sessions := make([]string, sessionsPerGoroutine)
			for i := range sessions {
				// The same ids after a restart.
				sessions[i] = id.Derive(id.Session, time.UnixMilli(1_800_000_000_000),
					os.Getenv("SOAK_SEED"), number, strconv.Itoa(worker), strconv.Itoa(i))
			}
			writeEvents(ctx, db, sessions, time.Second*goroutinesPerWriter/time.Duration(rate))
		})
	}
	all.Wait()
	return nil
}

var errRolledBack = errors.New("rolled back on purpose")

// writeEvents commits mutations: a row of the ledger and its event in the outbox. writeEvents rolls
// back rollbackShare of the mutations.
func writeEvents(ctx context.Context, db *pgxpool.Pool, sessions []string, every time.Duration) {
	next := time.Now()
	for ctx.Err() == nil {
		if next = next.Add(every); time.Until(next) > 0 {
			time.Sleep(time.Until(next))
		}
		session, now := sessions[rand.IntN(len(sessions))], time.Now()
		e := event.New(event.Meta{SessionID: session, Now: now}, randomPayload(session, now))
		err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `INSERT INTO soak.ledger (event_id, session) VALUES ($1, $2)`, e.ID, session); err != nil {
				return err
			}
			if err := outbox.Add(ctx, tx, e); err != nil {
				return err
			}
			if rand.Float64() < rollbackShare {
				_, err := tx.Exec(ctx, `SELECT nextval('soak.undone')`)
				return errors.Join(errRolledBack, err)
			}
			return nil
		})
		if err != nil && !errors.Is(err, errRolledBack) {
			fmt.Fprintln(os.Stderr, "soak: writer:", err)
		}
	}
}

func randomPayload(session string, now time.Time) event.Payload {
	switch rand.IntN(3) {
	case 0:
		return event.LocaleChanged{
			GuestSessionID: session, PreviousLocale: "en", NewLocale: "ps-AF", Trigger: "user-explicit", OccurredAt: now,
		}
	case 1:
		return event.CurrencyChanged{
			GuestSessionID: session, PreviousCurrency: "USD", NewCurrency: "AFN", Trigger: "user-explicit", OccurredAt: now,
		}
	}
	return event.ClickRecorded{
		GuestSessionID: session, Kind: "listing-card", TenantID: id.New(id.Tenant, now), PropertyID: id.New(id.Property, now), OccurredAt: now,
	}
}
