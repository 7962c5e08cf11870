package burial

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
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
	"melmastoon.ghasi.io/bff-consumer/shared/session"
)

const who = "gms_01H8YN7QV4D8KZ4F8Y5CK4MV3D"

// yard is a Room with its stores, and what writes to them beside it.
type yard struct {
	*Room
	t      *testing.T
	server *redistest.Redis
}

func newYard(t *testing.T) *yard {
	t.Helper()
	ring, err := keyring.Parse("test:QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB")
	if err != nil {
		t.Fatal(err)
	}
	keys, db, server := keyspace.Keys{Env: "test"}, pgtest.New(t), redistest.Server(t)
	rdb := server.Client()
	return &yard{
		Room: New(rdb, db, session.New(keys, ring, ring, db, time.Now), idempotency.New(rdb, db, keys, time.Now), outbox.NewRecorder(db, rdb, keys)),
		t:    t, server: server,
	}
}

// do asks for something under a key; work is a statement of it.
func (y *yard) do(key, work string, args ...any) (*idempotency.Copy, error) {
	q := idempotency.Request{SessionID: who, Route: "POST /things", Key: key, Digest: sha256.Sum256([]byte(work))}
	_, unkept, err := y.once.Do(context.Background(), q, nil, func(context.Context) (idempotency.Answer, *pgx.Batch, error) {
		b := &pgx.Batch{}
		b.Queue(work, args...)
		return idempotency.Answer{Status: 201, Body: []byte(`"secret-token"`)}, b, nil
	})
	return unkept, err
}

// keep copies an answer to Redis.
func (y *yard) keep(c *idempotency.Copy) {
	y.t.Helper()
	pipe := y.rdb.Pipeline()
	c.Keep(context.Background(), pipe)
	if err := lua.Exec(context.Background(), pipe); err != nil {
		y.t.Error(err)
	}
}

func (y *yard) bury() error { return y.Bury(context.Background(), &session.Session{ID: who}) }

func (y *yard) must(err error) {
	y.t.Helper()
	if err != nil {
		y.t.Fatal(err)
	}
}

// left is what the stores have of the session but for the mark and the burial itself.
func (y *yard) left() (found []string) {
	y.t.Helper()
	for _, key := range y.rdb.Keys(context.Background(), "*").Val() {
		if !strings.HasSuffix(key, ":cleared") {
			found = append(found, key)
		}
	}
	if read[int](y.t, y.db, `SELECT count(*) FROM bff_consumer.idempotency_keys`) != 0 {
		found = append(found, "idempotency_keys")
	}
	return found
}

func read[T any](t *testing.T, db *pgxpool.Pool, sql string, args ...any) (v T) {
	t.Helper()
	if err := db.QueryRow(context.Background(), sql, args...).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// waiting returns when so many wait for a lock that somebody took by its number.
func (y *yard) waiting(n int) {
	y.t.Helper()
	deadline := time.After(15 * time.Second)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for read[int](y.t, y.db, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`) < n {
		select {
		case <-tick.C:
		case <-deadline:
			y.t.Fatalf("never %d that wait", n)
		}
	}
}

func TestABurialWaitsForWhatIsUnderWayAndAllOfItIsForgotten(t *testing.T) {
	y := newYard(t)
	gate, err := y.db.Begin(t.Context())
	y.must(err)
	defer gate.Rollback(context.Background())
	_, err = gate.Exec(t.Context(), `SELECT pg_advisory_xact_lock(42)`)
	y.must(err)

	type answered struct {
		unkept *idempotency.Copy
		err    error
	}
	work, burial := make(chan answered), make(chan error)
	go func() {
		c, err := y.do("k", `SELECT pg_advisory_xact_lock(42)`) // its record is written, and not committed yet
		work <- answered{c, err}
	}()
	y.waiting(1)
	go func() { burial <- y.bury() }()
	y.waiting(2)
	y.must(gate.Rollback(t.Context()))
	a := <-work
	y.must(a.err)
	y.must(<-burial)
	y.must(y.Finish(t.Context(), who))
	y.keep(a.unkept) // comes late
	if left := y.left(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestThingsOfOneSessionAreDoneSideBySide(t *testing.T) {
	y := newYard(t)
	gate, err := y.db.Begin(t.Context())
	y.must(err)
	defer gate.Rollback(context.Background())
	_, err = gate.Exec(t.Context(), `SELECT pg_advisory_xact_lock(42)`)
	y.must(err)
	done := make(chan error)
	for _, key := range []string{"k1", "k2"} {
		go func() {
			_, err := y.do(key, `SELECT pg_advisory_xact_lock_shared(42)`)
			done <- err
		}()
	}
	y.waiting(2) // both at the work, neither at the other
	if n := read[int](t, y.db, `SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND objid <> 42`); n != 0 {
		t.Errorf("%d wait for the session", n)
	}
	y.must(gate.Rollback(t.Context()))
	for range 2 {
		y.must(<-done)
	}
}

func TestForABuriedSessionNothingIsDone(t *testing.T) {
	y := newYard(t)
	_, err := y.db.Exec(t.Context(), `CREATE TABLE done (what text)`)
	y.must(err)
	y.must(y.bury())
	for range 2 { // the refusal gives the claim up
		if _, err := y.do("k", `INSERT INTO done VALUES ('it')`); !errors.Is(err, session.ErrCleared) {
			t.Errorf("%v", err)
		}
	}
	if n := read[int](t, y.db, `SELECT count(*) FROM done`); n != 0 || len(y.left()) != 0 {
		t.Errorf("done %d times; left: %v", n, y.left())
	}
}

func TestAFinishThatFailedFindsEverythingWhenRepeated(t *testing.T) {
	y := newYard(t)
	for _, key := range []string{"k1", "k2"} {
		c, err := y.do(key, `SELECT 1`)
		y.must(err)
		y.keep(c)
	}
	part := keyspace.Keys{Env: "test"}.SessionPart
	pipe := y.rdb.Pipeline()
	pipe.HSet(t.Context(), keyspace.Keys{Env: "test"}.Session(who), "activeSearches", strings.Repeat("a", 16)+"=srs_01H8YN7QV4D8KZ4F8Y5CK4MV3D")
	pipe.LPush(t.Context(), part(who, "history"), `{"searchSessionId":"srs_01H8YN7QV4D8KZ4F8Y5CK4MV3E"}`)
	pipe.LPush(t.Context(), part(who, "recent"), `{}`)
	for _, id := range []string{"srs_01H8YN7QV4D8KZ4F8Y5CK4MV3D", "srs_01H8YN7QV4D8KZ4F8Y5CK4MV3E"} {
		pipe.HSet(t.Context(), keyspace.Keys{Env: "test"}.Key("srs", id), "guestSessionId", who)
	}
	_, err := pipe.Exec(t.Context())
	y.must(err)
	y.must(y.bury())
	held := len(y.left())

	step := &outage{}
	y.rdb.AddHook(step)
	for n := 0; ; n++ { // Redis goes at every step in turn
		step.after, step.active = n, true
		err := y.Finish(t.Context(), who)
		step.active = false
		if err == nil {
			break
		}
		if !errors.Is(err, errGone) {
			t.Fatal(err)
		}
	}
	if left := y.left(); len(left) != 0 {
		t.Errorf("left of %d: %v", held, left)
	}
}

// outage is a Redis that goes after so many round trips.
type outage struct {
	active bool
	after  int
}

var errGone = errors.New("gone")

func (o *outage) gone() bool {
	o.after--
	return o.active && o.after < 0
}

func (o *outage) DialHook(next redis.DialHook) redis.DialHook { return next }

func (o *outage) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if o.gone() {
			cmd.SetErr(errGone)
			return errGone
		}
		return next(ctx, cmd)
	}
}

func (o *outage) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if o.gone() {
			for _, cmd := range cmds {
				cmd.SetErr(errGone)
			}
			return errGone
		}
		return next(ctx, cmds)
	}
}
