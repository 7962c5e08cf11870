package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
)

// copied is a table that a mint writes to, with the row that the last one left there.
type copied struct {
	table, columns string // the key first
	key            func() string
	sql            string
	row            []any
}

// serveInserts answers each request with one transaction: the rows of the last mint again, under keys of their own. It is
// sent in one round trip, as the mint sends it, or step by step, as it is commonly written.
func serveInserts(addr string, steps bool) error {
	ctx := context.Background()
	db, err := postgres.Open(ctx, postgres.Config{URL: os.Getenv("DATABASE_URL"), MaxConns: 4}) // as many as a function has
	if err != nil {
		return err
	}
	next := func(kind id.Prefix) func() string { return func() string { return id.New(kind, time.Now()) } }
	tables := []*copied{
		{table: "idempotency_keys", key: next(id.Request),
			columns: "composite_key, guest_session_id, route, request_digest, response_status, response_body::text, created_at, expires_at"},
		{table: "handoff_replay_log", key: next(id.Handoff),
			columns: "id, guest_session_id, tenant_id, property_id, check_in, check_out, adults, children, rooms, currency, locale, " +
				"source_campaign::text, hmac_key_id, fingerprint_hash, ip_hash, minted_at, expires_at, children_ages"},
		{table: "outbox", key: next(id.Event), columns: "id, topic, payload::text, headers::text, retention_class"},
	}
	for _, t := range tables {
		if err := t.read(ctx, db); err != nil {
			return err
		}
	}
	return http.ListenAndServe(addr, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		b := &pgx.Batch{}
		for _, t := range tables {
			row := append([]any{t.key()}, t.row[1:]...)
			b.Queue(t.sql, row...)
		}
		insert := inOneTrip
		if steps {
			insert = stepByStep
		}
		if err := insert(r.Context(), db, b); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		write(w, []byte("{}"))
	}))
}

func inOneTrip(ctx context.Context, db *pgxpool.Pool, b *pgx.Batch) error {
	return db.SendBatch(ctx, b).Close()
}

func stepByStep(ctx context.Context, db *pgxpool.Pool, b *pgx.Batch) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		for _, q := range b.QueuedQueries {
			if _, err := tx.Exec(ctx, q.SQL, q.Arguments...); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *copied) read(ctx context.Context, db *pgxpool.Pool) error {
	rows, _ := db.Query(ctx, `SELECT `+c.columns+` FROM bff_consumer.`+c.table+` ORDER BY 1 DESC LIMIT 1`)
	row, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	if err != nil {
		return fmt.Errorf("bench: read the row of a mint in %s: %w", c.table, err)
	}
	c.row = row
	places := make([]string, len(row))
	for i := range places {
		places[i] = fmt.Sprintf("$%d", i+1)
	}
	c.sql = `INSERT INTO bff_consumer.` + c.table + ` (` + strings.ReplaceAll(c.columns, "::text", "") + `)
		VALUES (` + strings.Join(places, ", ") + `)`
	return nil
}
