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

// childVerb starts this program as one of the processes of a trial.
const childVerb = "soak-child"

const (
	goroutinesPerWriter  = 8   // of a writer, which write at once
	sessionsPerGoroutine = 125 // sessions that are a hand's alone, so that theirs is one order of commits
	rollbackShare        = 0.1
)

// runChild is a process of the trial, as its environment says; it runs until it is killed, or until nobody holds its
// leash.
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

// runRelay is a relay to whom the minute is always just beginning.
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

func runWriter(ctx context.Context) error {
	number := os.Getenv("SOAK_NUMBER")
	rate, err := strconv.Atoi(os.Getenv("SOAK_RATE"))
	if err != nil || rate < goroutinesPerWriter {
		return fmt.Errorf("soak: a rate of %q", os.Getenv("SOAK_RATE"))
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
	// What the one before us had begun to commit is committed first, or it would come after ours.
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
	for hand := range goroutinesPerWriter {
		all.Go(func() {
			sessions := make([]string, sessionsPerGoroutine)
			for i := range sessions {
				// The same ones after a kill.
				sessions[i] = id.Derive(id.Session, time.UnixMilli(1_800_000_000_000),
					os.Getenv("SOAK_SEED"), number, strconv.Itoa(hand), strconv.Itoa(i))
			}
			writeEvents(ctx, db, sessions, time.Second*goroutinesPerWriter/time.Duration(rate))
		})
	}
	all.Wait()
	return nil
}

var errRolledBack = errors.New("undone")

// writeEvents commits mutations, each a row of the ledger and the event that tells of it; some it rolls back.
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
