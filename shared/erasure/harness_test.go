package erasure

import (
	"context"
	"crypto/sha256"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"melmastoon.ghasi.io/bff-consumer/shared/idempotency"
	"melmastoon.ghasi.io/bff-consumer/shared/keyring"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

const sessionID = "gms_01H8YN7QV4D8KZ4F8Y5CK4MV3D"

var keys = redisclient.Keys{Env: "test"}

// harness is an Eraser with stores of its own.
type harness struct {
	*Eraser
	t *testing.T
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	ring, err := keyring.Parse("test:QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB")
	if err != nil {
		t.Fatal(err)
	}
	db, rdb := pgtest.New(t), redistest.NewServer(t).Client()
	return &harness{
		Eraser: New(rdb, db, session.New(keys, ring, ring, db, time.Now), idempotency.New(rdb, db, keys, time.Now), outbox.NewRecorder(db, rdb, keys)),
		t:      t,
	}
}

// runOnce runs a statement of the session under an idempotency key.
func (h *harness) runOnce(key, statement string) (*idempotency.PendingCopy, error) {
	q := idempotency.Request{SessionID: sessionID, Route: "POST /things", Key: key, Digest: sha256.Sum256([]byte(statement))}
	_, pending, err := h.idempotency.Do(context.Background(), q, nil, func(context.Context) (idempotency.Response, *pgx.Batch, error) {
		b := &pgx.Batch{}
		b.Queue(statement)
		return idempotency.Response{Status: 201, Body: []byte(`"secret-token"`)}, b, nil
	})
	return pending, err
}

// storeCopy copies an idempotent answer to Redis.
func (h *harness) storeCopy(c *idempotency.PendingCopy) {
	h.t.Helper()
	pipe := h.rdb.Pipeline()
	c.Enqueue(context.Background(), pipe)
	if err := lua.Exec(context.Background(), pipe); err != nil {
		h.t.Error(err)
	}
}

func (h *harness) begin() error {
	return h.Begin(context.Background(), &session.Session{ID: sessionID})
}

// must fails the test for an error.
func (h *harness) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// remaining returns the Redis keys and the tables with data of the session, apart from the marker
// in Redis and the record of the erasure.
func (h *harness) remaining() (found []string) {
	h.t.Helper()
	for _, key := range h.rdb.Keys(context.Background(), "*").Val() {
		if !strings.HasSuffix(key, ":cleared") {
			found = append(found, key)
		}
	}
	if queryValue[int](h.t, h.db, `SELECT count(*) FROM bff_consumer.idempotency_keys`) != 0 {
		found = append(found, "idempotency_keys")
	}
	return found
}

// requireErased fails the test if the stores have data of the session.
func (h *harness) requireErased() {
	h.t.Helper()
	if got := h.remaining(); len(got) != 0 {
		h.t.Errorf("remaining data: %q, want none", got)
	}
}

func queryValue[T any](t *testing.T, db *pgxpool.Pool, sql string) (v T) {
	t.Helper()
	if err := db.QueryRow(context.Background(), sql).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// holdLock takes advisory lock 42 in a transaction, so that a statement of a test can wait for it.
func (h *harness) holdLock() (release func()) {
	h.t.Helper()
	tx, err := h.db.Begin(h.t.Context())
	h.must(err)
	h.t.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // an error after release
	_, err = tx.Exec(h.t.Context(), `SELECT pg_advisory_xact_lock(42)`)
	h.must(err)
	return func() {
		h.t.Helper()
		h.must(tx.Rollback(h.t.Context()))
	}
}

// countLockWaiters counts the transactions of this database that wait for an advisory lock. Other
// databases of the server belong to tests that run in parallel.
const countLockWaiters = `
	SELECT count(*)
	FROM pg_locks
	WHERE locktype = 'advisory'
	  AND NOT granted
	  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

// awaitLockWaiters returns when n transactions of this database wait for an advisory lock.
func (h *harness) awaitLockWaiters(n int) {
	h.t.Helper()
	deadline := time.After(15 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		got := queryValue[int](h.t, h.db, countLockWaiters)
		if got >= n {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			h.t.Fatalf("%d transactions wait for a lock, want %d", got, n)
		}
	}
}
