package idempotency

import (
	"context"
	"crypto/sha256"
	"errors"
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

// harness is a room with real stores. Its work adds one row to a table of its own.
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

// do is Do by a caller that keeps what is to be kept.
func (h *harness) do(ctx context.Context, q Request, w Mutation) (Response, error) {
	a, unkept, err := h.store.Do(ctx, q, nil, w)
	pipe := h.rdb.Pipeline()
	unkept.Enqueue(ctx, pipe)
	lua.Exec(ctx, pipe)
	return a, err
}

func newRequest(key, what string) Request {
	return Request{SessionID: "gms_1", Route: "POST /things", Key: key, Digest: sha256.Sum256([]byte(what))}
}

// rawBody is a body that jsonb would not keep as it is.
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
			t.Errorf("%d: %d %s %t %v", n, a.Status, a.Body, a.Replayed, err)
		}
	}
	if n := h.countRows(); n != 1 {
		t.Errorf("done %d times", n)
	}
}

func TestStoreEnqueue_ClaimSharesThePipeline(t *testing.T) {
	h := newHarness(t)
	peek := func(q Request) *ClaimAttempt {
		pipe := h.rdb.Pipeline()
		p := h.store.Enqueue(t.Context(), pipe, q)
		pipe.Exec(t.Context())
		return p
	}
	trips := redistest.Count(h.rdb)
	q := newRequest("k", "a")
	for n := range 2 {
		trips.TakeCount()
		a, unkept, err := h.store.Do(t.Context(), q, peek(q), insertRow)
		if err != nil || a.Replayed != (n > 0) || trips.TakeCount() != 1 {
			t.Errorf("%d: %v, replayed %t", n, err, a.Replayed)
		}
		pipe := h.rdb.Pipeline()
		unkept.Enqueue(t.Context(), pipe)
		if pipe.Len() != 1-n {
			t.Errorf("%d: %d commands to keep it", n, pipe.Len())
		}
		lua.Exec(t.Context(), pipe)
	}
	other := newRequest("l", "a")
	other.SessionID = "gms_2"
	if a, _, err := h.store.Do(t.Context(), other, peek(newRequest("l", "a")), insertRow); err != nil || a.Replayed {
		t.Errorf("another session than was peeked for: %v", err)
	}
	if a, err := h.do(t.Context(), newRequest("l", "a"), insertRow); err != nil || a.Replayed {
		t.Errorf("the key of the session that was peeked for is not free: %v", err)
	}
}

func TestStoreDo_MissingCopyIsReadFromPostgres(t *testing.T) {
	h := newHarness(t)
	if _, _, err := h.store.Do(t.Context(), newRequest("k", "a"), nil, insertRow); err != nil {
		t.Fatal(err)
	}
	h.rdb.FlushAll(t.Context()) // as when the claim has lapsed
	if a, err := h.do(t.Context(), newRequest("k", "a"), insertRow); err != nil || !a.Replayed {
		t.Errorf("%v", err)
	}
}

func TestStoreDo_KeyIsScopedToSessionAndRoute(t *testing.T) {
	h := newHarness(t)
	other, route := newRequest("k", "a"), newRequest("k", "a")
	other.SessionID, route.Route = "gms_2", "POST /others"
	for n, q := range []Request{newRequest("k", "a"), other, route, newRequest("l", "a")} {
		if a, err := h.do(t.Context(), q, insertRow); err != nil || a.Replayed {
			t.Errorf("%d: %t %v", n, a.Replayed, err)
		}
	}
	if _, err := h.do(t.Context(), newRequest("k", "b"), insertRow); !isKind(err, problem.IdempotencyKeyReused) {
		t.Errorf("%v", err)
	}
	h.rdb.FlushAll(t.Context())
	if _, err := h.do(t.Context(), newRequest("k", "b"), insertRow); !isKind(err, problem.IdempotencyKeyReused) {
		t.Errorf("after a wipe: %v", err)
	}
	if n := h.countRows(); n != 4 {
		t.Errorf("done %d times", n)
	}
}

// blockedDo starts a Do whose work waits, and returns once it works.
func (h *harness) blockedDo(key string, fail error) (release func(), result <-chan error) {
	working, hold, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := h.do(h.t.Context(), newRequest(key, "a"), func(ctx context.Context) (Response, *pgx.Batch, error) {
			close(working)
			<-hold
			if fail != nil {
				return Response{}, nil, fail
			}
			return insertRow(ctx)
		})
		ended <- err
	}()
	<-working
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
		t.Errorf("%v, the time is over: %v", err, ctx.Err())
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := h.do(gone, newRequest("k", "a"), insertRow); !errors.Is(err, context.Canceled) {
		t.Errorf("who hung up: %v", err)
	}
	release()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := h.countRows(); n != 1 {
		t.Errorf("done %d times", n)
	}
}

func TestStoreDo_WaitersReceiveTheResponse(t *testing.T) {
	h := newHarness(t)
	release, ended := h.blockedDo("k", nil)
	answers := make(chan Response, 9)
	for range cap(answers) {
		go func() {
			a, err := h.do(t.Context(), newRequest("k", "a"), insertRow)
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
	}
	release()
	for range cap(answers) {
		if a := <-answers; !a.Replayed || string(a.Body) != rawBody {
			t.Errorf("%t %s", a.Replayed, a.Body)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := h.countRows(); n != 1 {
		t.Errorf("done %d times", n)
	}
}

func TestStoreDo_FailureReleasesClaimAtOnce(t *testing.T) {
	h := newHarness(t)
	refusal := problem.New(problem.TenantSuspended, "", nil)
	if _, err := h.do(t.Context(), newRequest("k", "a"), func(context.Context) (Response, *pgx.Batch, error) {
		return Response{}, nil, refusal
	}); !isKind(err, problem.TenantSuspended) {
		t.Fatal(err)
	}
	if n := h.rdb.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys left", n)
	}
	release, ended := h.blockedDo("l", refusal)
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
		t.Errorf("%+v", a)
	}
	if err := <-ended; !isKind(err, problem.TenantSuspended) && err != nil { // nil: the other was quicker, and is on record
		t.Error(err)
	}
}

func TestStoreDo_FailedStatementRollsBackRecord(t *testing.T) {
	h := newHarness(t)
	broken := func(ctx context.Context) (Response, *pgx.Batch, error) {
		a, b, err := insertRow(ctx)
		b.Queue("SELECT 1 / 0")
		return a, b, err
	}
	if _, err := h.do(t.Context(), newRequest("k", "a"), broken); err == nil {
		t.Fatal("answered")
	}
	if a, err := h.do(t.Context(), newRequest("k", "a"), insertRow); err != nil || a.Replayed {
		t.Errorf("%v %t", err, a.Replayed)
	}
	if n := h.countRows(); n != 1 {
		t.Errorf("done %d times", n)
	}
}

func TestStoreDo_CorruptCopyFallsBackToPostgres(t *testing.T) {
	h := newHarness(t)
	q := newRequest("k", "a")
	zeros := strings.Repeat("00", sha256.Size)
	for _, garbage := range []string{
		"", "{", `{"digest":"AAAA","status":201}`, `[]`, "answer", "answer 201 00\n{}", "answer x " + zeros + "\n{}", "answer 201 " + zeros,
	} {
		h.rdb.Set(t.Context(), "test:bff-consumer:idem:"+q.compositeKey(), garbage, time.Minute)
		if a, err := h.do(t.Context(), q, insertRow); err != nil || string(a.Body) != rawBody {
			t.Errorf("%q: %v %s", garbage, err, a.Body)
		}
	}
	h.rdb.FlushAll(t.Context())
	h.rdb.LPush(t.Context(), "test:bff-consumer:idem:"+q.compositeKey(), "a list")
	if a, err := h.do(t.Context(), q, insertRow); err != nil || !a.Replayed {
		t.Errorf("another type: %v", err)
	}
	if n := h.countRows(); n != 1 {
		t.Errorf("done %d times", n)
	}
}

func TestStoreDo_ExpiredRecordFreesTheKey(t *testing.T) {
	h := newHarness(t)
	for n := range 3 {
		a, err := h.do(t.Context(), newRequest("k", "another thing each day"), insertRow)
		if err != nil || a.Replayed {
			t.Errorf("day %d: %v %t", n, err, a.Replayed)
		}
		h.time.Add(TTL.Milliseconds())
		h.rdb.FlushAll(t.Context())
	}
	if n := h.countRows(); n != 3 {
		t.Errorf("done %d times", n)
	}
}

func TestKey_ReadsAndValidatesHeader(t *testing.T) {
	for name, c := range map[string]struct {
		h    http.Header
		want string
		ok   bool
	}{
		"none":           {http.Header{}, "", true},
		"one":            {http.Header{"Idempotency-Key": {"a b"}}, "a b", true},
		"the alias":      {http.Header{"X-Idempotency-Key": {"a"}}, "a", true},
		"both, the same": {http.Header{"Idempotency-Key": {"a"}, "X-Idempotency-Key": {"a"}}, "a", true},
		"both":           {http.Header{"Idempotency-Key": {"a"}, "X-Idempotency-Key": {"b"}}, "", false},
		"twice":          {http.Header{"Idempotency-Key": {"a", "b"}}, "", false},
		"empty":          {http.Header{"Idempotency-Key": {""}}, "", false},
		"a newline":      {http.Header{"Idempotency-Key": {"a\nb"}}, "", false},
		"long":           {http.Header{"Idempotency-Key": {strings.Repeat("k", 256)}}, "", false},
	} {
		got, err := Key(c.h)
		if got != c.want || (err == nil) != c.ok || err != nil && !isKind(err, problem.MalformedRequest) {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	if _, err := RequiredKey(http.Header{}); !isKind(err, problem.IdempotencyKeyRequired) {
		t.Error(err)
	}
}

func TestDigest_IgnoresMemberOrder(t *testing.T) {
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
			t.Fatal("the order of a map counts")
		}
	}
	if other, _ := Digest(thing{A: "x"}); other == one {
		t.Error("something else has the same digest")
	}
	if _, err := Digest(func() {}); err == nil {
		t.Error("a function has a digest")
	}
}
