package idempotency

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

// harness is a Store with a real Redis and Postgres. The mutation insertRow adds a row to the table
// done.
type harness struct {
	t     *testing.T
	store *Store
	db    *pgxpool.Pool
	rdb   redis.UniversalClient
	time  atomic.Int64
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{t: t, db: pgtest.New(t), rdb: redistest.New(t)}
	h.time.Store(time.Now().UnixMilli())
	h.newStore(h.db)
	if _, err := h.db.Exec(t.Context(), "CREATE TABLE done (what text)"); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *harness) newStore(db *pgxpool.Pool) {
	h.store = New(h.rdb, db, redisclient.Keys{Env: "test"}, func() time.Time { return time.UnixMilli(h.time.Load()).UTC() })
}

func (h *harness) countRows() (n int) {
	h.t.Helper()
	if err := h.db.QueryRow(context.Background(), "SELECT count(*) FROM done").Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// do calls Do and stores the copy, as a caller does.
func (h *harness) do(ctx context.Context, q Request, m Mutation) (Response, error) {
	a, pending, err := h.store.Do(ctx, q, nil, m)
	pipe := h.rdb.Pipeline()
	pending.Enqueue(ctx, pipe)
	lua.Exec(ctx, pipe)
	return a, err
}

func newRequest(key, what string) Request {
	return Request{SessionID: "gms_1", Route: "POST /things", Key: key, Digest: sha256.Sum256([]byte(what))}
}

// rawBody is a body that jsonb would change.
const rawBody = `{"z":1,"a":"<&>\u0000 ه",  "b":1.0,"b":2}`

func insertRow(context.Context) (Response, *pgx.Batch, error) {
	b := &pgx.Batch{}
	b.Queue("INSERT INTO done (what) VALUES ($1)", "it")
	return Response{Status: 201, Body: []byte(rawBody)}, b, nil
}

func isKind(err error, kind problem.Kind) bool {
	p, ok := errors.AsType[*problem.Problem](err)
	return ok && p.Kind == kind
}

func TestStoreDo_ReplaysSameBytesFromRedisAndPostgres(t *testing.T) {
	h := newHarness(t)
	for n, wiped := range []bool{false, false, true, false} {
		if wiped {
			h.rdb.FlushAll(t.Context())
		}
		a, err := h.do(t.Context(), newRequest("k", "a"), insertRow)
		if err != nil || a.Status != 201 || string(a.Body) != rawBody || a.Replayed != (n > 0) {
			t.Errorf("request %d: status %d, body %s, replayed %t, error %v; want 201, %s, %t", n, a.Status, a.Body, a.Replayed, err, rawBody, n > 0)
		}
	}
	if n := h.countRows(); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestStoreEnqueue_ClaimSharesThePipeline(t *testing.T) {
	h := newHarness(t)
	enqueue := func(q Request) *ClaimAttempt {
		pipe := h.rdb.Pipeline()
		p := h.store.Enqueue(t.Context(), pipe, q)
		pipe.Exec(t.Context())
		return p
	}
	trips := redistest.Count(h.rdb)
	q := newRequest("k", "a")
	for n := range 2 {
		trips.TakeCount()
		a, pending, err := h.store.Do(t.Context(), q, enqueue(q), insertRow)
		if err != nil || a.Replayed != (n > 0) || trips.TakeCount() != 1 {
			t.Errorf("request %d: error %v, replayed %t; want replayed %t in one round trip", n, err, a.Replayed, n > 0)
		}
		pipe := h.rdb.Pipeline()
		pending.Enqueue(t.Context(), pipe)
		if pipe.Len() != 1-n {
			t.Errorf("request %d: %d commands for the copy, want %d", n, pipe.Len(), 1-n)
		}
		lua.Exec(t.Context(), pipe)
	}
	other := newRequest("l", "a")
	other.SessionID = "gms_2"
	if a, _, err := h.store.Do(t.Context(), other, enqueue(newRequest("l", "a")), insertRow); err != nil || a.Replayed {
		t.Errorf("attempt of another session: error %v, replayed %t; want a new response", err, a.Replayed)
	}
	if a, err := h.do(t.Context(), newRequest("l", "a"), insertRow); err != nil || a.Replayed {
		t.Errorf("key of the other session: error %v, replayed %t; want a new response", err, a.Replayed)
	}
}

func TestStoreDo_MissingCopyIsReadFromPostgres(t *testing.T) {
	h := newHarness(t)
	if _, _, err := h.store.Do(t.Context(), newRequest("k", "a"), nil, insertRow); err != nil {
		t.Fatal(err)
	}
	h.rdb.FlushAll(t.Context()) // as after the expiry of the claim
	if a, err := h.do(t.Context(), newRequest("k", "a"), insertRow); err != nil || !a.Replayed {
		t.Errorf("error %v, replayed %t; want a replay", err, a.Replayed)
	}
}

func TestStoreDo_KeyIsScopedToSessionAndRoute(t *testing.T) {
	h := newHarness(t)
	other, route := newRequest("k", "a"), newRequest("k", "a")
	other.SessionID, route.Route = "gms_2", "POST /others"
	for n, q := range []Request{newRequest("k", "a"), other, route, newRequest("l", "a")} {
		if a, err := h.do(t.Context(), q, insertRow); err != nil || a.Replayed {
			t.Errorf("request %d: error %v, replayed %t; want a new response", n, err, a.Replayed)
		}
	}
	if _, err := h.do(t.Context(), newRequest("k", "b"), insertRow); !isKind(err, problem.IdempotencyKeyReused) {
		t.Errorf("error %v, want IdempotencyKeyReused", err)
	}
	h.rdb.FlushAll(t.Context())
	if _, err := h.do(t.Context(), newRequest("k", "b"), insertRow); !isKind(err, problem.IdempotencyKeyReused) {
		t.Errorf("without the copy: error %v, want IdempotencyKeyReused", err)
	}
	if n := h.countRows(); n != 4 {
		t.Errorf("%d rows, want 4", n)
	}
}

// blockedDo starts a Do whose mutation waits for release, and returns when the mutation runs.
func (h *harness) blockedDo(key string, fail error) (release func(), result <-chan error) {
	running, hold, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := h.do(h.t.Context(), newRequest(key, "a"), func(ctx context.Context) (Response, *pgx.Batch, error) {
			close(running)
			<-hold
			if fail != nil {
				return Response{}, nil, fail
			}
			return insertRow(ctx)
		})
		ended <- err
	}()
	<-running
	return sync.OnceFunc(func() { close(hold) }), ended
}

func TestStoreDo_WaitersStopBeforeTheirDeadline(t *testing.T) {
	h := newHarness(t)
	release, ended := h.blockedDo("k", nil)
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), responseReserve+50*time.Millisecond)
	defer cancel()
	_, err := h.do(ctx, newRequest("k", "a"), insertRow)
	p, ok := errors.AsType[*problem.Problem](err)
	if !ok || p.Kind != problem.IdempotencyInProgress || p.RetryAfter != time.Second || ctx.Err() != nil {
		t.Errorf("error %v, context %v; want IdempotencyInProgress with a retry after 1s before the deadline", err, ctx.Err())
	}
	disconnected, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.do(disconnected, newRequest("k", "a"), insertRow); !errors.Is(err, context.Canceled) {
		t.Errorf("disconnected client: error %v, want Canceled", err)
	}
	release()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := h.countRows(); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestStoreDo_WaitersReceiveTheResponse(t *testing.T) {
	h := newHarness(t)
	release, ended := h.blockedDo("k", nil)
	responses := make(chan Response, 9)
	for range cap(responses) {
		go func() {
			a, err := h.do(t.Context(), newRequest("k", "a"), insertRow)
			if err != nil {
				t.Error(err)
			}
			responses <- a
		}()
	}
	release()
	for range cap(responses) {
		if a := <-responses; !a.Replayed || string(a.Body) != rawBody {
			t.Errorf("replayed %t, body %s; want a replay of %s", a.Replayed, a.Body, rawBody)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := h.countRows(); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestStoreDo_FailureReleasesClaimAtOnce(t *testing.T) {
	h := newHarness(t)
	rejection := problem.New(problem.TenantSuspended, "", nil)
	if _, err := h.do(t.Context(), newRequest("k", "a"), func(context.Context) (Response, *pgx.Batch, error) {
		return Response{}, nil, rejection
	}); !isKind(err, problem.TenantSuspended) {
		t.Fatal(err)
	}
	if n := h.rdb.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys in Redis, want 0", n)
	}
	release, ended := h.blockedDo("l", rejection)
	waiting := make(chan Response)
	go func() {
		a, err := h.do(t.Context(), newRequest("l", "a"), insertRow)
		if err != nil {
			t.Error(err)
		}
		waiting <- a
	}()
	release()
	if a := <-waiting; a.Replayed || a.Status != 201 {
		t.Errorf("waiting request: %+v, want a new response", a)
	}
	// nil: the waiting request committed first
	if err := <-ended; !isKind(err, problem.TenantSuspended) && err != nil {
		t.Error(err)
	}
}

func TestStoreDo_FailedStatementRollsBackRecord(t *testing.T) {
	h := newHarness(t)
	failing := func(ctx context.Context) (Response, *pgx.Batch, error) {
		a, b, err := insertRow(ctx)
		b.Queue("SELECT 1 / 0")
		return a, b, err
	}
	if _, err := h.do(t.Context(), newRequest("k", "a"), failing); err == nil {
		t.Fatal("no error from a failing statement")
	}
	if a, err := h.do(t.Context(), newRequest("k", "a"), insertRow); err != nil || a.Replayed {
		t.Errorf("error %v, replayed %t; want a new response", err, a.Replayed)
	}
	if n := h.countRows(); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestStoreDo_CorruptCopyFallsBackToPostgres(t *testing.T) {
	h := newHarness(t)
	q := newRequest("k", "a")
	zeros := strings.Repeat("00", sha256.Size)
	for _, garbage := range []string{
		"", "{", `{"digest":"AAAA","status":201}`, `[]`, "answer", "answer 201 00\n{}", "answer x " + zeros + "\n{}", "answer 201 " + zeros,
	} {
		t.Run(fmt.Sprintf("%.30q", garbage), func(t *testing.T) {
			h.rdb.Set(t.Context(), "test:bff-consumer:idem:"+q.compositeKey(), garbage, time.Minute)
			if a, err := h.do(t.Context(), q, insertRow); err != nil || string(a.Body) != rawBody {
				t.Errorf("error %v, body %s; want %s", err, a.Body, rawBody)
			}
		})
	}
	h.rdb.FlushAll(t.Context())
	h.rdb.LPush(t.Context(), "test:bff-consumer:idem:"+q.compositeKey(), "a list")
	if a, err := h.do(t.Context(), q, insertRow); err != nil || !a.Replayed {
		t.Errorf("copy of another type: error %v, replayed %t; want a replay", err, a.Replayed)
	}
	if n := h.countRows(); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

func TestStoreDo_ExpiredRecordFreesTheKey(t *testing.T) {
	h := newHarness(t)
	for n := range 3 {
		a, err := h.do(t.Context(), newRequest("k", "a"), insertRow)
		if err != nil || a.Replayed {
			t.Errorf("day %d: error %v, replayed %t; want a new response", n, err, a.Replayed)
		}
		h.time.Add(TTL.Milliseconds())
		h.rdb.FlushAll(t.Context())
	}
	if n := h.countRows(); n != 3 {
		t.Errorf("%d rows, want 3", n)
	}
}

func TestKey_ReadsAndValidatesHeader(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		h    http.Header
		want string
		ok   bool
	}{
		"no header":            {http.Header{}, "", true},
		"one header":           {http.Header{"Idempotency-Key": {"a b"}}, "a b", true},
		"alias":                {http.Header{"X-Idempotency-Key": {"a"}}, "a", true},
		"both with equal keys": {http.Header{"Idempotency-Key": {"a"}, "X-Idempotency-Key": {"a"}}, "a", true},
		"both with two keys":   {http.Header{"Idempotency-Key": {"a"}, "X-Idempotency-Key": {"b"}}, "", false},
		"two values":           {http.Header{"Idempotency-Key": {"a", "b"}}, "", false},
		"empty key":            {http.Header{"Idempotency-Key": {""}}, "", false},
		"newline":              {http.Header{"Idempotency-Key": {"a\nb"}}, "", false},
		"256 characters":       {http.Header{"Idempotency-Key": {strings.Repeat("k", 256)}}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Key(c.h)
			if got != c.want || (err == nil) != c.ok || err != nil && !isKind(err, problem.MalformedRequest) {
				t.Errorf("key %q, error %v; want %q, valid %t", got, err, c.want, c.ok)
			}
		})
	}
	if _, err := RequiredKey(http.Header{}); !isKind(err, problem.IdempotencyKeyRequired) {
		t.Error(err)
	}
}

func TestDigest_IgnoresMemberOrder(t *testing.T) {
	t.Parallel()
	type thing struct {
		A string         `json:"a"`
		M map[string]int `json:"m,omitzero"`
	}
	one, err := Digest(thing{"x", map[string]int{"a": 1, "b": 2, "c": 3}})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if again, _ := Digest(thing{"x", map[string]int{"c": 3, "b": 2, "a": 1}}); again != one {
			t.Fatal("the order of a map changes the digest")
		}
	}
	if other, _ := Digest(thing{A: "x"}); other == one {
		t.Error("another request has the same digest")
	}
	if _, err := Digest(func() {}); err == nil {
		t.Error("no error for a function")
	}
}
