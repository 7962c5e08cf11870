package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Backlog is how much is waiting.
type Backlog struct {
	Depth    int64     // rows neither published nor parked
	Rejected int64     // of them, tried without success
	Oldest   time.Time // of them; zero when there is none
	Parked   int64
}

// ReadBacklog counts. With a million rows waiting it takes most of a second. It is asked once in a run, so that to
// prepare it would be a round trip for nothing.
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

// Filter chooses rows that were not published. Empty fields choose all.
type Filter struct {
	Parked   bool // only those given up
	Rejected bool // only those refused at least once
	Session  string
	Topics   []string // any of these
	Limit    int
}

// Entry is a row as the team on call sees it.
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

// List returns rows that were not published, the oldest first.
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

// Replay lets rows be tried again, as if for the first time, and returns the ids of those that were not published: of
// the rows named, or of all that are parked. A row that was parked comes after what its session has sent meanwhile.
func Replay(ctx context.Context, db *pgxpool.Pool, ids []string, allParked bool) ([]string, error) {
	rows, _ := db.Query(ctx, `
		UPDATE bff_consumer.outbox
		SET attempts = 0, due_at = NULL, parked_at = NULL
		WHERE published_at IS NULL
		  AND (id = ANY($1) OR $2 AND parked_at IS NOT NULL)
		RETURNING id::text`, ids, allParked)
	return collectIDs(rows, "replay")
}

// Park gives rows up until somebody replays them, and returns the ids of those that were waiting. Their sessions are
// not held back by them any more.
func Park(ctx context.Context, db *pgxpool.Pool, ids []string) ([]string, error) {
	rows, _ := db.Query(ctx, `
		UPDATE bff_consumer.outbox
		SET parked_at = now(), last_error = coalesce(last_error, 'parked by hand')
		WHERE published_at IS NULL AND parked_at IS NULL AND id = ANY($1)
		RETURNING id::text`, ids)
	return collectIDs(rows, "park")
}

func collectIDs(rows pgx.Rows, what string) ([]string, error) {
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("outbox: %s: %w", what, err)
	}
	return ids, nil
}
