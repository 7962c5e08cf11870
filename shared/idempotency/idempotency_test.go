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

	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/pgtest"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/redistest"
)

// house is a room with real stores. Its work adds one row to a table of its own.
type house struct {
	t    *testing.T
	room *Room
	db   *pgxpool.Pool
	rdb  redis.UniversalClient
	time atomic.Int64
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, db: pgtest.New(t), rdb: redistest.New(t)}
	h.time.Store(time.Now().UnixMilli())
	h.open(h.db)
	if _, err := h.db.Exec(t.Context(), "CREATE TABLE done (what text)"); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *house) open(db *pgxpool.Pool) {
	h.room = New(h.rdb, db, keyspace.Keys{Env: "test"}, func() time.Time { return time.UnixMilli(h.time.Load()).UTC() })
}

func (h *house) done() (n int) {
	h.t.Helper()
	if err := h.db.QueryRow(context.Background(), "SELECT count(*) FROM done").Scan(&n); err != nil {
		h.t.Fatal(err)
	}
	return n
}

// do is Do by a caller that keeps what is to be kept.
func (h *house) do(ctx context.Context, q Request, w Work) (Answer, error) {
	a, unkept, err := h.room.Do(ctx, q, nil, w)
	pipe := h.rdb.Pipeline()
	unkept.Keep(ctx, pipe)
	lua.Exec(ctx, pipe)
	return a, err
}

func request(key, what string) Request {
	return Request{SessionID: "gms_1", Route: "POST /things", Key: key, Digest: sha256.Sum256([]byte(what))}
}

// odd is a body that jsonb would not keep as it is.
const odd = `{"z":1,"a":"<&>\u0000 ه",  "b":1.0,"b":2}`

func work(context.Context) (Answer, *pgx.Batch, error) {
	b := &pgx.Batch{}
	b.Queue("INSERT INTO done (what) VALUES ($1)", "it")
	return Answer{Status: 201, Body: []byte(odd)}, b, nil
}

func is(err error, kind problem.Kind) bool {
	p, ok := errors.AsType[*problem.Problem](err)
	return ok && p.Kind == kind
}

func TestTheSameBytesFromEitherStore(t *testing.T) {
	h := newHouse(t)
	for n, wiped := range []bool{false, false, true, false} {
		if wiped {
			h.rdb.FlushAll(t.Context())
		}
		a, err := h.do(t.Context(), request("k", "a"), work)
		if err != nil || a.Status != 201 || string(a.Body) != odd || a.Replayed != (n > 0) {
			t.Errorf("%d: %d %s %t %v", n, a.Status, a.Body, a.Replayed, err)
		}
	}
	if n := h.done(); n != 1 {
		t.Errorf("done %d times", n)
	}
}

func TestTheFirstTryMayGoWithOtherCommands(t *testing.T) {
	h := newHouse(t)
	peek := func(q Request) *Peeked {
		pipe := h.rdb.Pipeline()
		p := h.room.Peek(t.Context(), pipe, q)
		pipe.Exec(t.Context())
		return p
	}
	trips := redistest.Count(h.rdb)
	q := request("k", "a")
	for n := range 2 {
		trips.Take()
		a, unkept, err := h.room.Do(t.Context(), q, peek(q), work)
		if err != nil || a.Replayed != (n > 0) || trips.Take() != 1 {
			t.Errorf("%d: %v, replayed %t", n, err, a.Replayed)
		}
		pipe := h.rdb.Pipeline()
		unkept.Keep(t.Context(), pipe)
		if pipe.Len() != 1-n {
			t.Errorf("%d: %d commands to keep it", n, pipe.Len())
		}
		lua.Exec(t.Context(), pipe)
	}
	other := request("l", "a")
	other.SessionID = "gms_2"
	if a, _, err := h.room.Do(t.Context(), other, peek(request("l", "a")), work); err != nil || a.Replayed {
		t.Errorf("another session than was peeked for: %v", err)
	}
	if a, err := h.do(t.Context(), request("l", "a"), work); err != nil || a.Replayed {
		t.Errorf("the key of the session that was peeked for is not free: %v", err)
	}
}

func TestWhatWasNotKeptIsFoundOnRecord(t *testing.T) {
	h := newHouse(t)
	if _, _, err := h.room.Do(t.Context(), request("k", "a"), nil, work); err != nil {
		t.Fatal(err)
	}
	h.rdb.FlushAll(t.Context()) // as when the claim has lapsed
	if a, err := h.do(t.Context(), request("k", "a"), work); err != nil || !a.Replayed {
		t.Errorf("%v", err)
	}
}

func TestAKeyMeansOneThingToOneSessionOnOneRoute(t *testing.T) {
	h := newHouse(t)
	other, route := request("k", "a"), request("k", "a")
	other.SessionID, route.Route = "gms_2", "POST /others"
	for n, q := range []Request{request("k", "a"), other, route, request("l", "a")} {
		if a, err := h.do(t.Context(), q, work); err != nil || a.Replayed {
			t.Errorf("%d: %t %v", n, a.Replayed, err)
		}
	}
	if _, err := h.do(t.Context(), request("k", "b"), work); !is(err, problem.IdempotencyKeyReused) {
		t.Errorf("%v", err)
	}
	h.rdb.FlushAll(t.Context())
	if _, err := h.do(t.Context(), request("k", "b"), work); !is(err, problem.IdempotencyKeyReused) {
		t.Errorf("after a wipe: %v", err)
	}
	if n := h.done(); n != 4 {
		t.Errorf("done %d times", n)
	}
}

// held starts a Do whose work waits, and returns once it works.
func (h *house) held(key string, fail error) (release func(), result <-chan error) {
	working, hold, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := h.do(h.t.Context(), request(key, "a"), func(ctx context.Context) (Answer, *pgx.Batch, error) {
			close(working)
			<-hold
			if fail != nil {
				return Answer{}, nil, fail
			}
			return work(ctx)
		})
		ended <- err
	}()
	<-working
	return sync.OnceFunc(func() { close(hold) }), ended
}

func TestTheOthersWaitNoLongerThanTheyCan(t *testing.T) {
	h := newHouse(t)
	release, ended := h.held("k", nil)
	defer release()
	ctx, cancel := context.WithTimeout(t.Context(), answering+50*time.Millisecond)
	defer cancel()
	_, err := h.do(ctx, request("k", "a"), work)
	p, ok := errors.AsType[*problem.Problem](err)
	if !ok || p.Kind != problem.IdempotencyInProgress || p.RetryAfter != time.Second || ctx.Err() != nil {
		t.Errorf("%v, the time is over: %v", err, ctx.Err())
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := h.do(gone, request("k", "a"), work); !errors.Is(err, context.Canceled) {
		t.Errorf("who hung up: %v", err)
	}
	release()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := h.done(); n != 1 {
		t.Errorf("done %d times", n)
	}
}

func TestWhoWaitsGetsTheAnswer(t *testing.T) {
	h := newHouse(t)
	release, ended := h.held("k", nil)
	answers := make(chan Answer, 9)
	for range cap(answers) {
		go func() {
			a, err := h.do(t.Context(), request("k", "a"), work)
			if err != nil {
				t.Error(err)
			}
			answers <- a
		}()
	}
	release()
	for range cap(answers) {
		if a := <-answers; !a.Replayed || string(a.Body) != odd {
			t.Errorf("%t %s", a.Replayed, a.Body)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := h.done(); n != 1 {
		t.Errorf("done %d times", n)
	}
}

func TestARefusalLetsTheNextOneTryAtOnce(t *testing.T) {
	h := newHouse(t)
	refusal := problem.New(problem.TenantSuspended, "", nil)
	if _, err := h.do(t.Context(), request("k", "a"), func(context.Context) (Answer, *pgx.Batch, error) {
		return Answer{}, nil, refusal
	}); !is(err, problem.TenantSuspended) {
		t.Fatal(err)
	}
	if n := h.rdb.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys left", n)
	}
	release, ended := h.held("l", refusal)
	waiting := make(chan Answer)
	go func() {
		a, err := h.do(t.Context(), request("l", "a"), work)
		if err != nil {
			t.Error(err)
		}
		waiting <- a
	}()
	release()
	if a := <-waiting; a.Replayed || a.Status != 201 {
		t.Errorf("%+v", a)
	}
	if err := <-ended; !is(err, problem.TenantSuspended) && err != nil { // nil: the other was quicker, and is on record
		t.Error(err)
	}
}

func TestAStatementThatFailsTakesTheRecordWithIt(t *testing.T) {
	h := newHouse(t)
	broken := func(ctx context.Context) (Answer, *pgx.Batch, error) {
		a, b, err := work(ctx)
		b.Queue("SELECT 1 / 0")
		return a, b, err
	}
	if _, err := h.do(t.Context(), request("k", "a"), broken); err == nil {
		t.Fatal("answered")
	}
	if a, err := h.do(t.Context(), request("k", "a"), work); err != nil || a.Replayed {
		t.Errorf("%v %t", err, a.Replayed)
	}
	if n := h.done(); n != 1 {
		t.Errorf("done %d times", n)
	}
}

func TestWhatRedisHasThatCannotBeReadIsLeftToPostgres(t *testing.T) {
	h := newHouse(t)
	q := request("k", "a")
	zeros := strings.Repeat("00", sha256.Size)
	for _, garbage := range []string{
		"", "{", `{"digest":"AAAA","status":201}`, `[]`, "answer", "answer 201 00\n{}", "answer x " + zeros + "\n{}", "answer 201 " + zeros,
	} {
		h.rdb.Set(t.Context(), "test:bff-consumer:idem:"+q.composite(), garbage, time.Minute)
		if a, err := h.do(t.Context(), q, work); err != nil || string(a.Body) != odd {
			t.Errorf("%q: %v %s", garbage, err, a.Body)
		}
	}
	h.rdb.FlushAll(t.Context())
	h.rdb.LPush(t.Context(), "test:bff-consumer:idem:"+q.composite(), "a list")
	if a, err := h.do(t.Context(), q, work); err != nil || !a.Replayed {
		t.Errorf("another type: %v", err)
	}
	if n := h.done(); n != 1 {
		t.Errorf("done %d times", n)
	}
}

func TestATimeThatIsOverFreesTheKey(t *testing.T) {
	h := newHouse(t)
	for n := range 3 {
		a, err := h.do(t.Context(), request("k", "another thing each day"), work)
		if err != nil || a.Replayed {
			t.Errorf("day %d: %v %t", n, err, a.Replayed)
		}
		h.time.Add(Life.Milliseconds())
		h.rdb.FlushAll(t.Context())
	}
	if n := h.done(); n != 3 {
		t.Errorf("done %d times", n)
	}
}

func TestKeysOfRequests(t *testing.T) {
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
		if got != c.want || (err == nil) != c.ok || err != nil && !is(err, problem.MalformedRequest) {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	if _, err := RequiredKey(http.Header{}); !is(err, problem.IdempotencyKeyRequired) {
		t.Error(err)
	}
}

func TestADigestIsThatOfWhatIsMeant(t *testing.T) {
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
