// Package idempotency executes a mutation at most once per idempotency key, and replays its
// response byte for byte to later requests with the key. Postgres decides, by a record in the
// transaction of the mutation. Redis holds a copy of the response, which saves a replay the round
// trip to Postgres, and a claim, which makes concurrent requests wait. The package does not know
// the content of a mutation.
package idempotency

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/postgres"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/session/lock"
)

// TTL is how long a response is replayed.
const TTL = 24 * time.Hour

// Store holds the responses to mutations. Safe for concurrent use.
type Store struct {
	rdb  redis.UniversalClient
	db   *pgxpool.Pool
	keys redisclient.Keys
	now  func() time.Time
}

// New returns a Store. It does not dial and never fails. now is the clock for the expiry of
// records.
func New(rdb redis.UniversalClient, db *pgxpool.Pool, keys redisclient.Keys, now func() time.Time) *Store {
	return &Store{rdb, db, keys, now}
}

// Request identifies a request. A key is scoped to the session and the route.
type Request struct {
	SessionID string
	Route     string            // "POST /handoff"
	Key       string            // as the client sent it
	Digest    [sha256.Size]byte // digest of the decoded request; see Digest
}

// Response is the response of a mutation, new or replayed.
type Response struct {
	Status   int
	Body     []byte // JSON
	Replayed bool   // an earlier request got the response, or the reply to the commit was lost
}

// Mutation prepares a mutation: the response, and the statements that Do commits with the record of
// the response. A Mutation must not write. Do calls m only if no record of the key is known, and
// may call m twice. The batch must not be nil without an error; it may be empty.
type Mutation func(ctx context.Context) (Response, *pgx.Batch, error)

// Digest returns the SHA-256 of a decoded request in deterministic JSON: white space and the order
// of members make no difference. Digest returns a zero digest and an error if json cannot encode
// the request. CPU only.
func Digest(request any) ([sha256.Size]byte, error) {
	text, err := json.Marshal(request, json.Deterministic(true))
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("idempotency: digest: %w", err)
	}
	return sha256.Sum256(text), nil
}

// compositeKey returns the hash that names a key in Redis and in Postgres.
func (q *Request) compositeKey() string {
	sum := sha256.Sum256([]byte(q.SessionID + "|" + q.Route + "|" + q.Key))
	return hex.EncodeToString(sum[:])
}

// redisKey returns the Redis key for the claim and the copy of a composite key.
func (s *Store) redisKey(compositeKey string) string { return s.keys.Key("idem", compositeKey) }

// Do returns the response to a request: the recorded response of the key, or the response of m. In
// the second case Do commits the statements of m together with the record of the response. attempt
// is the result of Enqueue, or nil to claim the key in a separate round trip of at most 100 ms. Do
// releases the claim of an attempt for another request and claims anew, in a round trip each.
//
// A replay from the copy in Redis costs no more than the claim. The first request with a key costs
// one round trip to Postgres, of at most 1 s with the wait for exclusive transactions of the
// session (see package lock), and the time of m. If m or the commit fails, Do adds a round trip of
// at most 1 s to read the record, and a round trip to Redis, of at most 100 ms, to release the
// claim. An expired record of the key doubles the round trips and the calls of m. The round trips
// to Postgres ignore the client's cancellation and respect the deadline of ctx. The caller enqueues
// the returned PendingCopy on the next pipeline. A PendingCopy is nil with an error and if the
// response comes from Redis.
//
// Concurrent requests with the same key wait for the first request, even with another digest. A
// waiting request polls Redis every 25 ms, for 2 s or until 200 ms before the deadline of ctx, and
// then gets the problem IdempotencyInProgress. If ctx ends meanwhile, Do returns the error of ctx;
// with a claim, Do goes on after a cancellation. A request outlived by its claim of 2.5 s may run
// beside the next: Postgres accepts one of the two commits.
//
// A key with another digest on record is the problem IdempotencyKeyReused. An error of m is
// returned, as by postgres.Problem, and not recorded, unless another request has recorded a
// response: Do returns that response instead. If Postgres finds the session cleared, Do changes
// nothing and returns lock.ErrCleared. A panic of m leaves the claim to expire.
//
// Without Redis no request waits before m; Postgres decides by the unique key. Without Postgres Do
// returns the problem UpstreamUnavailable, unless Redis has the response. After a lost reply the
// mutation may be committed: a repetition with the key gets the recorded response. Other errors of
// Postgres are returned as they are, and nothing is committed.
func (s *Store) Do(ctx context.Context, q Request, attempt *ClaimAttempt, m Mutation) (Response, *PendingCopy, error) {
	if attempt != nil && attempt.request != q { // claimed for a session that the request does not have
		s.release(ctx, attempt.claim)
		attempt = nil
	}
	if attempt == nil {
		attempt = s.tryClaim(ctx, q)
	}
	c, prior, err := s.awaitClaim(ctx, attempt)
	if err != nil {
		return Response{}, nil, err
	}
	var pending *PendingCopy
	if prior == nil {
		if prior, err = s.execute(ctx, q, attempt.compositeKey, m); err != nil {
			s.release(ctx, c)
			return Response{}, nil, err
		}
		pending = &PendingCopy{s, c, prior}
	}
	if prior.digest != q.Digest {
		pipe := s.rdb.Pipeline()
		pending.Enqueue(ctx, pipe)
		lua.Exec(ctx, pipe) // if Exec fails, the claim expires
		return Response{}, nil, problem.New(problem.IdempotencyKeyReused, "Use a new key for another request.", nil)
	}
	return prior.Response, pending, nil
}

// record is a recorded response.
type record struct {
	Response
	digest    [sha256.Size]byte
	expiresAt time.Time
}

// execute runs the mutation and commits the record, or returns the record of another request. After
// any failure it reads the record: another request may have committed first, or the reply to the
// own commit may be lost.
func (s *Store) execute(ctx context.Context, q Request, compositeKey string, m Mutation) (*record, error) {
	for retried := false; ; retried = true {
		response, statements, err := m(ctx)
		if err == nil {
			o := &record{Response: response, digest: q.Digest, expiresAt: s.now().Add(TTL)}
			if err = s.commit(ctx, q, compositeKey, o, statements); err == nil {
				return o, nil
			}
			if errors.Is(err, lock.ErrCleared) {
				return nil, err // a record that still exists must not be replayed after the clear
			}
		}
		prior, loadErr := s.loadRecord(ctx, compositeKey)
		switch {
		case prior != nil:
			return prior, nil
		case !isDuplicateKey(err):
			return nil, postgres.Problem(err)
		case loadErr != nil:
			return nil, postgres.Problem(loadErr)
		case retried:
			return nil, err // unreachable: an expired record would have to be inserted meanwhile
		}
		// An expired record blocked the key, and loadRecord has deleted it.
	}
}
