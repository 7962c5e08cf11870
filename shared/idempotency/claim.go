package idempotency

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/problem"
)

const (
	// claimTTL is the life of a claim, as long as a request may take. If a mutation takes longer, a
	// second request runs it too and Postgres accepts one of the two commits. If the claiming
	// instance dies, the claim expires and the key is free again.
	claimTTL     = 2500 * time.Millisecond
	pollInterval = 25 * time.Millisecond
	maxWait      = 2 * time.Second
	// part of the request's deadline that a waiting request keeps for its response
	responseReserve = 200 * time.Millisecond
	redisTimeout    = 100 * time.Millisecond // of one round trip; then the store works as without Redis
)

// A key in Redis holds "claim <random>" while the mutation runs, then the response: "answer
// <status> <hex of the request's digest>", a line feed, and the body.
const (
	claimPrefix    = "claim "
	responsePrefix = "answer "
)

// encode returns the value of a response in Redis.
func (o *record) encode() string {
	b := make([]byte, 0, len(responsePrefix)+4+2*sha256.Size+1+len(o.Body))
	b = append(b, responsePrefix...)
	b = strconv.AppendInt(b, int64(o.Status), 10)
	b = append(b, ' ')
	b = hex.AppendEncode(b, o.digest[:])
	b = append(b, '\n')
	return string(append(b, o.Body...))
}

// decodeRecord is the inverse of encode. It returns nil if value is not a response. The record has
// no expiresAt.
func decodeRecord(value string) *record {
	head, body, hasBody := strings.Cut(value, "\n")
	head, isResponse := strings.CutPrefix(head, responsePrefix)
	status, digits, _ := strings.Cut(head, " ")
	n, err := strconv.Atoi(status)
	digest, digestErr := hex.DecodeString(digits)
	if !hasBody || !isResponse || err != nil || digestErr != nil || len(digest) != sha256.Size {
		return nil
	}
	return &record{Response: Response{Status: n, Body: []byte(body), Replayed: true}, digest: [sha256.Size]byte(digest)}
}

// claim is the right to run the mutation while other requests wait. The zero claim, without Redis,
// makes no request wait.
type claim struct{ key, token string }

// ClaimAttempt is a queued attempt to claim a key. Pass the attempt to Do or Cancel after the
// pipeline has run.
type ClaimAttempt struct {
	request      Request
	compositeKey string // of request
	claim        claim
	cmd          *redis.StatusCmd // previous value; redis.Nil if the claim is set
}

// Enqueue queues the first attempt to claim the key of a request, one SET, on the caller's
// pipeline. This saves Do a round trip. The claim expires after 2.5 s. Enqueue sends nothing and
// never returns nil. After the pipeline ran, also after a failure, pass the attempt to Do or
// Cancel: an unused claim makes other requests with the key wait.
func (s *Store) Enqueue(ctx context.Context, pipe redis.Pipeliner, q Request) *ClaimAttempt {
	return s.enqueueClaim(ctx, pipe, q)
}

// enqueueClaim sends or queues the SET of a claim.
func (s *Store) enqueueClaim(ctx context.Context, redisOrPipe redis.Cmdable, q Request) *ClaimAttempt {
	composite := q.compositeKey()
	c := claim{s.redisKey(composite), claimPrefix + rand.Text()}
	return &ClaimAttempt{q, composite, c, redisOrPipe.SetArgs(ctx, c.key, c.token, redis.SetArgs{Mode: "NX", Get: true, TTL: claimTTL})}
}

// IsRetry reports, after the pipeline of Enqueue has run, whether the key is in use: an earlier
// request with the key was answered or is running. It knows Redis alone: it is false for a nil
// attempt, without Redis, and for an answer that only Postgres has. It makes no round trip.
func (a *ClaimAttempt) IsRetry() bool { return a != nil && a.cmd.Err() == nil }

// tryClaim attempts to claim the key of a request in a separate round trip.
func (s *Store) tryClaim(ctx context.Context, q Request) *ClaimAttempt {
	ctx, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	return s.enqueueClaim(ctx, s.rdb, q)
}

// awaitClaim returns the claim of a key, or the response in Redis. While another request has the
// claim, awaitClaim tries again every pollInterval. Without Redis, and for an unreadable value, it
// returns the zero claim and no response. attempt is the first try.
func (s *Store) awaitClaim(ctx context.Context, attempt *ClaimAttempt) (c claim, prior *record, err error) {
	for end := time.Now().Add(waitBudget(ctx)); ; attempt = s.tryClaim(ctx, attempt.request) {
		value, err := attempt.cmd.Result()
		switch {
		case errors.Is(err, redis.Nil):
			return attempt.claim, nil, nil
		case ctx.Err() != nil:
			return claim{}, nil, ctx.Err() // the client disconnected before the mutation started
		case err != nil || !strings.HasPrefix(value, claimPrefix):
			return claim{}, decodeRecord(value), nil
		case !time.Now().Before(end):
			return claim{}, nil, problem.New(problem.IdempotencyInProgress, "Please ask again in a moment.", nil).WithRetryAfter(time.Second)
		}
		// A request with another digest waits too: the first request may fail, and then its key is
		// unused.
		select {
		case <-time.After(min(pollInterval, time.Until(end))):
		case <-ctx.Done():
			return claim{}, nil, ctx.Err()
		}
	}
}

// waitBudget returns how long a request can wait for another request.
func waitBudget(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(maxWait, time.Until(deadline)-responseReserve)
	}
	return maxWait
}

// Cancel releases the claim of an attempt, for a request that is rejected before Do. Cancel takes a
// round trip of at most 100 ms, also after the client disconnected or the deadline passed, and
// ignores errors: the claim expires, 2.5 s after Enqueue. For a nil attempt, and for an attempt
// that found the key in use, Cancel does nothing. Cancel never deletes the claim of another
// request.
func (s *Store) Cancel(ctx context.Context, attempt *ClaimAttempt) {
	if attempt != nil && attempt.cmd.Err() != nil { // redis.Nil: claimed; any other error: perhaps claimed
		s.release(ctx, attempt.claim)
	}
}

// release deletes a claim. The next request can then claim the key at once. If release fails, the
// claim expires.
func (s *Store) release(ctx context.Context, c claim) {
	if c == (claim{}) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), redisTimeout)
	defer cancel()
	lua.Release(ctx, s.rdb, c.key, c.token)
}

// PendingCopy is a recorded response without a copy in Redis. Its methods do nothing on a nil
// PendingCopy.
type PendingCopy struct {
	store *Store
	claim
	record *record
}

// Enqueue queues the replacement of the claim by the response, one script, on a pipeline that
// lua.Exec runs. It sends nothing and cannot fail. It queues nothing without a claim (Redis did not
// answer) and for an expired record. The script does nothing if the claim was lost. Without the
// copy the next request waits until the claim expires, and then reads the record from Postgres.
func (c *PendingCopy) Enqueue(ctx context.Context, pipe redis.Pipeliner) {
	if c == nil || c.claim == (claim{}) {
		return
	}
	if ttl := c.record.expiresAt.Sub(c.store.now()); ttl > 0 {
		lua.CompareAndSwap(ctx, pipe, c.key, c.token, c.record.encode(), ttl)
	}
}
