package control

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/oklog/ulid/v2"

	"melmastoon.ghasi.io/bff-consumer/shared/id"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// telemetry shows the outbox as a log of messages. Ids are given before the commit, so a row with a low id may appear
// after one with a higher; the log therefore has its own order, that in which rows were first seen, and a cursor is a
// place in it. Rows that were there before come in the order of their ids.
type telemetry struct {
	db *pgxpool.Pool

	mu   sync.Mutex
	log  []message
	seen map[string]bool
}

// message is one event as its topic delivers it.
type message struct {
	ID          string            `json:"id"`
	Subject     string            `json:"subject"`
	Attributes  map[string]string `json:"attributes"`
	OrderingKey string            `json:"orderingKey,omitzero"`
	Data        jsontext.Value    `json:"data"` // {"envelope": …, "payload": …}
	CreatedAt   time.Time         `json:"createdAt"`
}

const (
	maxMessages = 1000
	lateness    = time.Minute // longer than any transaction of ours
	subjects    = "melmastoon.bff.consumer."
)

// refresh reads the rows that appeared since.
func (t *telemetry) refresh(ctx context.Context) error {
	after := string(id.Event) // sorts before every id
	if n := len(t.log); n > 0 {
		newest := slices.MaxFunc(t.log[max(0, n-maxMessages):], func(a, b message) int { return strings.Compare(a.ID, b.ID) })
		if at := id.Time(newest.ID).Add(-lateness); at.UnixMilli() > 0 {
			var floor ulid.ULID
			floor.SetTime(uint64(at.UnixMilli()))
			after += floor.String()
		}
	}
	rows, _ := t.db.Query(ctx, `
		SELECT id, topic, payload, headers, created_at
		FROM bff_consumer.outbox
		WHERE id > $1
		ORDER BY id`, after)
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (message, error) {
		var m message
		var payload []byte
		err := row.Scan(&m.ID, &m.Subject, &payload, &m.Attributes, &m.CreatedAt)
		m.Data = payload
		m.OrderingKey = m.Attributes["orderingKey"]
		return m, err
	})
	if err != nil {
		return err
	}
	if t.seen == nil {
		t.seen = map[string]bool{}
	}
	for _, m := range found {
		if !t.seen[m.ID] {
			t.seen[m.ID] = true
			t.log = append(t.log, m)
		}
	}
	return nil
}

// messages answers those after a cursor, oldest first, at most 1,000, and the cursor to go on with.
func (c *Control) messages(w http.ResponseWriter, r *http.Request) error {
	since := 0
	if text := r.URL.Query().Get("since"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			return problem.Invalid(problem.Field{Field: "since", Code: "cursor", Detail: "Must be a cursor of an earlier answer."})
		}
		since = n
	}
	subject := r.URL.Query().Get("subject")
	t := c.telemetry
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, cancel := context.WithTimeout(r.Context(), pingWithin)
	defer cancel()
	if err := t.refresh(ctx); err != nil {
		return problem.New(problem.UpstreamUnavailable, "The outbox cannot be read at present.", err)
	}
	found := []message{}
	at := min(since, len(t.log))
	for ; at < len(t.log) && len(found) < maxMessages; at++ {
		if m := t.log[at]; subject == "" || m.Subject == subject || m.Subject == subjects+subject {
			found = append(found, m)
		}
	}
	return web.WriteJSON(w, http.StatusOK, struct {
		Messages []message `json:"messages"`
		Cursor   string    `json:"cursor"`
	}{found, strconv.Itoa(at)})
}
