package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Backlog is the amount of unpublished rows.
type Backlog struct {
	Depth    int64     // rows neither published nor parked
	Rejected int64     // rows of Depth with a refusal by Pub/Sub
	Oldest   time.Time // creation of the oldest row of Depth; zero without rows
	Parked   int64     // rows given up
}

// ReadBacklog counts the unpublished rows, in one round trip and without locks. The count takes
// most of a second with a million unpublished rows. A run sends the query once, so the query is not
// prepared: preparing costs a round trip. ctx sets the time limit, also for the wait for a free
// connection. ReadBacklog returns a zero Backlog and an error without Postgres, after the deadline
// and for a cancelled ctx.
func ReadBacklog(ctx context.Context, db *pgxpool.Pool) (s Backlog, err error) {
	var oldest *time.Time
	err = db.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE parked_at IS NULL),
		       count(*) FILTER (WHERE parked_at IS NULL AND attempts > 0),
		       min(created_at) FILTER (WHERE parked_at IS NULL),
		       count(*) FILTER (WHERE parked_at IS NOT NULL)
		FROM bff_consumer.outbox
		WHERE published_at IS NULL`, pgx.QueryExecModeExec).Scan(&s.Depth, &s.Rejected, &oldest, &s.Parked)
	if err != nil {
		return s, fmt.Errorf("outbox: count: %w", err)
	}
	if oldest != nil {
		s.Oldest = *oldest
	}
	return s, nil
}

// Filter selects unpublished rows. An empty field selects all; Limit must be set.
type Filter struct {
	Parked   bool     // parked rows only
	Rejected bool     // rows with a refusal only
	Session  string   // session id
	Topics   []string // any of these topics
	Limit    int      // maximum number of rows
}

// Entry is a row of List, for operators.
type Entry struct {
	ID        string     `json:"id"`
	Topic     string     `json:"topic"`
	Session   string     `json:"session,omitzero"`
	CreatedAt time.Time  `json:"createdAt"`
	Attempts  int        `json:"attempts"`
	DueAt     *time.Time `json:"dueAt,omitzero"`
	ParkedAt  *time.Time `json:"parkedAt,omitzero"`
	LastError string     `json:"lastError,omitzero"`
	Headers   string     `json:"-"`
	Payload   string     `json:"-"`
}

// List returns at most f.Limit unpublished rows selected by f, the oldest first; the list is empty
// without such rows and for a zero Limit. List takes a single round trip (two at the first use of a
// connection, which prepares the query) and no locks. Postgres sorts all selected rows; the process
// holds the headers and payloads of the returned rows in memory. List returns nil and an error
// without Postgres, for a negative Limit and after the end of ctx.
func List(ctx context.Context, db *pgxpool.Pool, f Filter) ([]Entry, error) {
	rows, _ := db.Query(ctx, `
		SELECT id::text, topic, coalesce(headers ->> 'orderingKey', ''), created_at, attempts, due_at, parked_at, coalesce(last_error, ''),
		       headers::text, payload::text
		FROM bff_consumer.outbox
		WHERE published_at IS NULL
		  AND (NOT $1 OR parked_at IS NOT NULL)
		  AND (NOT $2 OR attempts > 0)
		  AND ($3 = '' OR headers ->> 'orderingKey' = $3)
		  AND ($4::text[] IS NULL OR topic = ANY($4))
		ORDER BY created_at, id
		LIMIT $5`, f.Parked, f.Rejected, f.Session, f.Topics, f.Limit)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Entry])
	if err != nil {
		return nil, fmt.Errorf("outbox: list: %w", err)
	}
	return list, nil
}

// Replay resets attempts, backoff and parking of unpublished rows: of the rows with the given ids
// and, with allParked, of all parked rows. The relay sends the rows with its next poll. Replay
// returns the ids of the reset rows; unknown ids and published rows are skipped. A replayed row is
// published after the rows of the same session that were published meanwhile.
//
// Replay is a single statement: it waits for rows under another statement's lock, as long as ctx
// allows, and changes all rows or no row. Replay returns nil and an error without Postgres and
// after the end of ctx; after a timeout the rows may be reset all the same. A repetition is
// harmless.
func Replay(ctx context.Context, db *pgxpool.Pool, ids []string, allParked bool) ([]string, error) {
	rows, _ := db.Query(ctx, `
		UPDATE bff_consumer.outbox
		SET attempts = 0, due_at = NULL, parked_at = NULL
		WHERE published_at IS NULL
		  AND (id = ANY($1) OR $2 AND parked_at IS NOT NULL)
		RETURNING id::text`, ids, allParked)
	return collectIDs(rows, "replay")
}

// Park parks pending rows. Until Replay the relay skips parked rows and sends the later rows of the
// same sessions; a relay with the row in its current batch may still send and mark the row. Park
// returns the ids of the newly parked rows; unknown, published and parked rows are skipped.
//
// Park is a single statement: it waits for rows under another statement's lock, as long as ctx
// allows, and changes all rows or no row. Park returns nil and an error without Postgres and after
// the end of ctx; after a timeout the rows may be parked all the same. A repetition is harmless and
// does not return these ids.
func Park(ctx context.Context, db *pgxpool.Pool, ids []string) ([]string, error) {
	rows, _ := db.Query(ctx, `
		UPDATE bff_consumer.outbox
		SET parked_at = now(), last_error = coalesce(last_error, 'parked by hand')
		WHERE published_at IS NULL AND parked_at IS NULL AND id = ANY($1)
		RETURNING id::text`, ids)
	return collectIDs(rows, "park")
}

// collectIDs reads ids; operation names the statement in an error.
func collectIDs(rows pgx.Rows, operation string) ([]string, error) {
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("outbox: %s: %w", operation, err)
	}
	return ids, nil
}
