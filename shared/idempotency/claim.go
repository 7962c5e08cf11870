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
	// claimTTL is how long a claim keeps the others waiting: as long as a request lives. Should the work take longer,
	// two do it and Postgres lets one of them commit; should whoever claimed die, the key is free again after it.
	claimTTL        = 2500 * time.Millisecond
	pollInterval    = 25 * time.Millisecond
	maxWait         = 2 * time.Second
	responseReserve = 200 * time.Millisecond // of the request's time, left for the answer of who waited
	redisTimeout    = 100 * time.Millisecond // for one step in Redis; then it is done without
)

// The value of a key in Redis is a claim while the work is done, "claim <random>", and the answer afterwards:
// "answer <status> <hex of the request's digest>" and a line feed before the body.
const (
	claimPrefix    = "claim "
	responsePrefix = "answer "
)

// encode is what Redis has of an answer.
func (o *record) encode() string {
	b := make([]byte, 0, len(responsePrefix)+4+2*sha256.Size+1+len(o.Body))
	b = append(b, responsePrefix...)
	b = strconv.AppendInt(b, int64(o.Status), 10)
	b = append(b, ' ')
	b = hex.AppendEncode(b, o.digest[:])
	b = append(b, '\n')
	return string(append(b, o.Body...))
}

// decodeRecord is the inverse; nil when it is no answer.
func decodeRecord(there string) *record {
	head, body, whole := strings.Cut(there, "\n")
	head, is := strings.CutPrefix(head, responsePrefix)
	status, digits, _ := strings.Cut(head, " ")
	n, err := strconv.Atoi(status)
	digest, digestErr := hex.DecodeString(digits)
	if !whole || !is || err != nil || digestErr != nil || len(digest) != sha256.Size {
		return nil
	}
	return &record{Response: Response{Status: n, Body: []byte(body), Replayed: true}, digest: [sha256.Size]byte(digest)}
}

// claim is the right to do the work while the others wait; the zero claim, without Redis, keeps nobody waiting.
type claim struct{ key, token string }

// ClaimAttempt is a claim that was tried.
type ClaimAttempt struct {
	request      Request
	compositeKey string // of q
	claim        claim
	cmd          *redis.StatusCmd // what is there; redis.Nil when the claim is set
}

// Enqueue queues the first try to claim the key on the caller's pipeline, for Do to use once the pipeline has run.
func (r *Store) Enqueue(ctx context.Context, pipe redis.Pipeliner, q Request) *ClaimAttempt {
	return r.enqueueClaim(ctx, pipe, q)
}

func (r *Store) enqueueClaim(ctx context.Context, redisOrPipe redis.Cmdable, q Request) *ClaimAttempt {
	composite := q.compositeKey()
	c := claim{r.redisKey(composite), claimPrefix + rand.Text()}
	return &ClaimAttempt{q, composite, c, redisOrPipe.SetArgs(ctx, c.key, c.token, redis.SetArgs{Mode: "NX", Get: true, TTL: claimTTL})}
}

// IsRetry says, once the pipeline of Peek has run, whether the key was used before: somebody was answered under it, or is
// being answered. Without an answer of Redis it is not known to be. seen may be nil.
func (seen *ClaimAttempt) IsRetry() bool { return seen != nil && seen.cmd.Err() == nil }

// tryClaim is Peek in a round trip of its own.
func (r *Store) tryClaim(ctx context.Context, q Request) *ClaimAttempt {
	ctx, cancel := context.WithTimeout(ctx, redisTimeout)
	defer cancel()
	return r.enqueueClaim(ctx, r.rdb, q)
}

// awaitClaim wins the key, or returns what was answered under it. It waits while somebody else has it. seen is the first try.
func (r *Store) awaitClaim(ctx context.Context, seen *ClaimAttempt) (c claim, prior *record, err error) {
	for end := time.Now().Add(waitBudget(ctx)); ; seen = r.tryClaim(ctx, seen.request) {
		there, err := seen.cmd.Result()
		switch {
		case errors.Is(err, redis.Nil):
			return seen.claim, nil, nil
		case ctx.Err() != nil:
			return claim{}, nil, ctx.Err() // who asked has gone, and nothing was begun
		case err != nil || !strings.HasPrefix(there, claimPrefix):
			return claim{}, decodeRecord(there), nil // no answer: Redis is away, or has what cannot be read
		case !time.Now().Before(end):
			return claim{}, nil, problem.New(problem.IdempotencyInProgress, "Please ask again in a moment.", nil).WithRetryAfter(time.Second)
		}
		// Also a claim for another request is waited for: it may come to nothing, and then the key was never used.
		select {
		case <-time.After(min(pollInterval, time.Until(end))):
		case <-ctx.Done():
			return claim{}, nil, ctx.Err()
		}
	}
}

// waitBudget is how long this request can wait for another.
func waitBudget(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(maxWait, time.Until(deadline)-responseReserve)
	}
	return maxWait
}

// Cancel gives up what Peek claimed, for a request that is refused before it comes to Do; seen may be nil.
func (r *Store) Cancel(ctx context.Context, seen *ClaimAttempt) {
	if seen != nil && seen.cmd.Err() != nil { // redis.Nil when it was claimed; else, without an answer, perhaps
		r.release(ctx, seen.claim)
	}
}

// release lets the next one try at once. If it fails, the claim lapses.
func (r *Store) release(ctx context.Context, c claim) {
	if c == (claim{}) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), redisTimeout)
	defer cancel()
	lua.Release(ctx, r.rdb, c.key, c.token)
}

// PendingCopy is an answer on record that is not in Redis yet. On a nil Copy everything does nothing.
type PendingCopy struct {
	store *Store
	claim
	record *record
}

// Enqueue puts the answer where the next one looks first, on a pipeline that lua.Exec runs, unless the claim is not ours any
// more. If that fails, or is left out, the next one waits for the claim to lapse and finds the record.
func (c *PendingCopy) Enqueue(ctx context.Context, pipe redis.Pipeliner) {
	if c == nil || c.claim == (claim{}) {
		return
	}
	if life := c.record.expiresAt.Sub(c.store.now()); life > 0 {
		lua.CompareAndSwap(ctx, pipe, c.key, c.token, c.record.encode(), life)
	}
}
