package erasure

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

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

// harness is a Room with its stores, and what writes to them beside it.
type harness struct {
	*Eraser
	t      *testing.T
	server *redistest.Redis
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	ring, err := keyring.Parse("test:QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB")
	if err != nil {
		t.Fatal(err)
	}
	keys, db, server := redisclient.Keys{Env: "test"}, pgtest.New(t), redistest.NewServer(t)
	rdb := server.Client()
	return &harness{
		Eraser: New(rdb, db, session.New(keys, ring, ring, db, time.Now), idempotency.New(rdb, db, keys, time.Now), outbox.NewRecorder(db, rdb, keys)),
		t:      t, server: server,
	}
}

// runOnce asks for something under a key; work is a statement of it.
func (y *harness) runOnce(key, work string, args ...any) (*idempotency.PendingCopy, error) {
	q := idempotency.Request{SessionID: sessionID, Route: "POST /things", Key: key, Digest: sha256.Sum256([]byte(work))}
	_, unkept, err := y.idempotency.Do(context.Background(), q, nil, func(context.Context) (idempotency.Response, *pgx.Batch, error) {
		b := &pgx.Batch{}
		b.Queue(work, args...)
		return idempotency.Response{Status: 201, Body: []byte(`"secret-token"`)}, b, nil
	})
	return unkept, err
}

// storeCopy copies an answer to Redis.
func (y *harness) storeCopy(c *idempotency.PendingCopy) {
	y.t.Helper()
	pipe := y.rdb.Pipeline()
	c.Enqueue(context.Background(), pipe)
	if err := lua.Exec(context.Background(), pipe); err != nil {
		y.t.Error(err)
	}
}

func (y *harness) begin() error {
	return y.Begin(context.Background(), &session.Session{ID: sessionID})
}

func (y *harness) must(err error) {
	y.t.Helper()
	if err != nil {
		y.t.Fatal(err)
	}
}

// remaining is what the stores have of the session but for the mark and the burial itself.
func (y *harness) remaining() (found []string) {
	y.t.Helper()
	for _, key := range y.rdb.Keys(context.Background(), "*").Val() {
		if !strings.HasSuffix(key, ":cleared") {
			found = append(found, key)
		}
	}
	if queryValue[int](y.t, y.db, `SELECT count(*) FROM bff_consumer.idempotency_keys`) != 0 {
		found = append(found, "idempotency_keys")
	}
	return found
}

func queryValue[T any](t *testing.T, db *pgxpool.Pool, sql string, args ...any) (v T) {
	t.Helper()
	if err := db.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// awaitLockWaiters returns when so many wait for a lock that somebody took by its number.
func (y *harness) awaitLockWaiters(n int) {
	y.t.Helper()
	deadline := time.After(15 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for queryValue[int](y.t, y.db, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`) < n {
		select {
		case <-tick.C:
		case <-deadline:
			y.t.Fatalf("never %d that wait", n)
		}
	}
}

func TestEraser_WaitsForRunningMutationAndErasesIt(t *testing.T) {
	y := newHarness(t)
	gate, err := y.db.Begin(t.Context())
	y.must(err)
	defer gate.Rollback(context.Background())
	_, err = gate.Exec(t.Context(), `SELECT pg_advisory_xact_lock(42)`)
	y.must(err)

	type answered struct {
		unkept *idempotency.PendingCopy
		err    error
	}
	work, burial := make(chan answered), make(chan error)
	go func() {
		c, err := y.runOnce("k", `SELECT pg_advisory_xact_lock(42)`) // its record is written, and not committed yet
		work <- answered{c, err}
	}()
	y.awaitLockWaiters(1)
	go func() { burial <- y.begin() }()
	y.awaitLockWaiters(2)
	y.must(gate.Rollback(t.Context()))
	a := <-work
	y.must(a.err)
	y.must(<-burial)
	y.must(y.Finish(t.Context(), sessionID))
	y.storeCopy(a.unkept) // comes late
	if left := y.remaining(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestEraser_MutationsOfOneSessionRunInParallel(t *testing.T) {
	y := newHarness(t)
	gate, err := y.db.Begin(t.Context())
	y.must(err)
	defer gate.Rollback(context.Background())
	_, err = gate.Exec(t.Context(), `SELECT pg_advisory_xact_lock(42)`)
	y.must(err)
	done := make(chan error)
	for _, key := range []string{"k1", "k2"} {
		go func() {
			_, err := y.runOnce(key, `SELECT pg_advisory_xact_lock_shared(42)`)
			done <- err
		}()
	}
	y.awaitLockWaiters(2) // both at the work, neither at the other
	if n := queryValue[int](t, y.db, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid <> 42`); n != 0 {
		t.Errorf("%d wait for the session", n)
	}
	y.must(gate.Rollback(t.Context()))
	for range 2 {
		y.must(<-done)
	}
}

func TestEraser_ClearedSessionAcceptsNoMutation(t *testing.T) {
	y := newHarness(t)
	_, err := y.db.Exec(t.Context(), `CREATE TABLE done (what text)`)
	y.must(err)
	y.must(y.begin())
	for range 2 { // the refusal gives the claim up
		if _, err := y.runOnce("k", `INSERT INTO done VALUES ('it')`); !errors.Is(err, session.ErrCleared) {
			t.Errorf("%v", err)
		}
	}
	if n := queryValue[int](t, y.db, `SELECT count(*) FROM done`); n != 0 || len(y.remaining()) != 0 {
		t.Errorf("done %d times; left: %v", n, y.remaining())
	}
}

func TestEraserFinish_IsRepeatableAfterFailure(t *testing.T) {
	y := newHarness(t)
	for _, key := range []string{"k1", "k2"} {
		c, err := y.runOnce(key, `SELECT 1`)
		y.must(err)
		y.storeCopy(c)
	}
	part := redisclient.Keys{Env: "test"}.SessionPart
	pipe := y.rdb.Pipeline()
	pipe.HSet(t.Context(), redisclient.Keys{Env: "test"}.Session(sessionID), "activeSearches", strings.Repeat("a", 16)+"=srs_01H8YN7QV4D8KZ4F8Y5CK4MV3D")
	pipe.LPush(t.Context(), part(sessionID, "history"), `{"searchSessionId":"srs_01H8YN7QV4D8KZ4F8Y5CK4MV3E"}`)
	pipe.LPush(t.Context(), part(sessionID, "recent"), `{}`)
	for _, id := range []string{"srs_01H8YN7QV4D8KZ4F8Y5CK4MV3D", "srs_01H8YN7QV4D8KZ4F8Y5CK4MV3E"} {
		pipe.HSet(t.Context(), redisclient.Keys{Env: "test"}.Key("srs", id), "guestSessionId", sessionID)
	}
	_, err := pipe.Exec(t.Context())
	y.must(err)
	y.must(y.begin())
	held := len(y.remaining())

	step := &failingHook{}
	y.rdb.AddHook(step)
	for n := 0; ; n++ { // Redis goes at every step in turn
		step.after, step.enabled = n, true
		err := y.Finish(t.Context(), sessionID)
		step.enabled = false
		if err == nil {
			break
		}
		if !errors.Is(err, errOutage) {
			t.Fatal(err)
		}
	}
	if left := y.remaining(); len(left) != 0 {
		t.Errorf("left of %d: %v", held, left)
	}
}

// failingHook is a Redis that goes after so many round trips.
type failingHook struct {
	enabled bool
	after   int
}

var errOutage = errors.New("gone")

func (o *failingHook) shouldFail() bool {
	o.after--
	return o.enabled && o.after < 0
}

func (o *failingHook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (o *failingHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if o.shouldFail() {
			cmd.SetErr(errOutage)
			return errOutage
		}
		return next(ctx, cmd)
	}
}

func (o *failingHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if o.shouldFail() {
			for _, cmd := range cmds {
				cmd.SetErr(errOutage)
			}
			return errOutage
		}
		return next(ctx, cmds)
	}
}
