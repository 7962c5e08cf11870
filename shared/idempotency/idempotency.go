// Package idempotency owns that a mutation asked for twice under one key is done once, and that both are told the same,
// byte for byte. Postgres decides, by a row in the mutation's own transaction; Redis has a copy, so that a repetition
// asks nobody else, and lets those who come at the same moment wait. It never knows what a mutation does.
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

// TTL is how long an answer is given again.
const TTL = 24 * time.Hour

// Store does things once. Safe for concurrent use.
type Store struct {
	rdb  redis.UniversalClient
	db   *pgxpool.Pool
	keys redisclient.Keys
	now  func() time.Time
}

// New makes a Room.
func New(rdb redis.UniversalClient, db *pgxpool.Pool, keys redisclient.Keys, now func() time.Time) *Store {
	return &Store{rdb, db, keys, now}
}

// Request is one asking.
type Request struct {
	SessionID string            // whose key it is
	Route     string            // "POST /handoff": a key means something on one route
	Key       string            // as the client sent it
	Digest    [sha256.Size]byte // of what is asked for, see Digest
}

// Response is what a mutation answers, the first time or again.
type Response struct {
	Status   int
	Body     []byte // JSON
	Replayed bool   // it was given before
}

// Mutation prepares a mutation: its answer, and the statements that make the answer true. It is called only by who may be
// the first, and may be called twice; it writes nothing itself.
type Mutation func(ctx context.Context) (Response, *pgx.Batch, error)

// Digest is that of a request as it was understood, so that white space and the order of members do not count.
func Digest(request any) ([sha256.Size]byte, error) {
	text, err := json.Marshal(request, json.Deterministic(true))
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("idempotency: digest: %w", err)
	}
	return sha256.Sum256(text), nil
}

// compositeKey names the key in both stores.
func (q *Request) compositeKey() string {
	sum := sha256.Sum256([]byte(q.SessionID + "|" + q.Route + "|" + q.Key))
	return hex.EncodeToString(sum[:])
}

// redisKey names the Redis copy of what is on record under a composite.
func (r *Store) redisKey(composite string) string { return r.keys.Key("idem", composite) }

// Do answers a request: with what was answered before under its key, or by doing the work, its statements and the
// record of the answer in one transaction and one round trip. Of those who ask at the same moment one does the work;
// the others, whatever they ask for, wait up to 2 s for it, and are told IdempotencyInProgress then. A key that was
// used for something else is IdempotencyKeyReused. A refusal is not remembered: the next one tries again. Without
// Redis, Postgres alone decides who is first; without Postgres nothing is done, and the answer is UpstreamUnavailable.
// For a session that was cleared nothing is done either: turn.ErrCleared. seen is what Peek tried for the same request,
// nil when it did not.
func (r *Store) Do(ctx context.Context, q Request, seen *ClaimAttempt, work Mutation) (Response, *PendingCopy, error) {
	if seen != nil && seen.request != q { // tried for a session that the guest turned out not to have
		r.release(ctx, seen.claim)
		seen = nil
	}
	if seen == nil {
		seen = r.tryClaim(ctx, q)
	}
	c, prior, err := r.awaitClaim(ctx, seen)
	if err != nil {
		return Response{}, nil, err
	}
	var copied *PendingCopy
	if prior == nil {
		if prior, err = r.execute(ctx, q, seen.compositeKey, work); err != nil {
			r.release(ctx, c)
			return Response{}, nil, err
		}
		copied = &PendingCopy{r, c, prior}
	}
	if prior.digest != q.Digest {
		pipe := r.rdb.Pipeline()
		copied.Enqueue(ctx, pipe)
		lua.Exec(ctx, pipe) // if it fails, the claim lapses
		return Response{}, nil, problem.New(problem.IdempotencyKeyReused, "Use a new key for another request.", nil)
	}
	return prior.Response, copied, nil
}

// record is an answer on record.
type record struct {
	Response
	digest    [sha256.Size]byte
	expiresAt time.Time // it is given again
}

// execute does the work, unless the record says that it was done. Whatever goes wrong, the record is asked: it tells
// whether somebody else was first, and, after a commit whose answer got lost, whether that somebody was us.
func (r *Store) execute(ctx context.Context, q Request, composite string, work Mutation) (*record, error) {
	for again := false; ; again = true {
		answer, batch, err := work(ctx)
		if err == nil {
			o := &record{Response: answer, digest: q.Digest, expiresAt: r.now().Add(TTL)}
			if err = r.commit(ctx, q, composite, o, batch); err == nil {
				return o, nil
			}
			if errors.Is(err, lock.ErrCleared) {
				return nil, err // what may be on record still is nobody's
			}
		}
		prior, lookErr := r.loadRecord(ctx, composite)
		switch {
		case prior != nil:
			return prior, nil
		case !isDuplicateKey(err):
			return nil, postgres.Problem(err)
		case lookErr != nil:
			return nil, postgres.Problem(lookErr)
		case again:
			return nil, err // unreachable: somebody would have to take the key with a record whose time is over
		}
		// The key was taken by a record whose time was over, and which is gone now.
	}
}
