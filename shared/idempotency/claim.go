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
	// leaseTerm is how long a claim keeps the others waiting: as long as a request lives. Should the work take longer,
	// two do it and Postgres lets one of them commit; should whoever claimed die, the key is free again after it.
	leaseTerm = 2500 * time.Millisecond
	pollEvery = 25 * time.Millisecond
	waitMost  = 2 * time.Second
	answering = 200 * time.Millisecond // of the request's time, left for the answer of who waited
	ioWithin  = 100 * time.Millisecond // for one step in Redis; then it is done without
)

// The value of a key in Redis is a claim while the work is done, "claim <random>", and the answer afterwards:
// "answer <status> <hex of the request's digest>" and a line feed before the body.
const (
	claimed  = "claim "
	answered = "answer "
)

// value is what Redis has of an answer.
func (o *outcome) value() string {
	b := make([]byte, 0, len(answered)+4+2*sha256.Size+1+len(o.Body))
	b = append(b, answered...)
	b = strconv.AppendInt(b, int64(o.Status), 10)
	b = append(b, ' ')
	b = hex.AppendEncode(b, o.digest[:])
	b = append(b, '\n')
	return string(append(b, o.Body...))
}

// readValue is the inverse; nil when it is no answer.
func readValue(there string) *outcome {
	head, body, whole := strings.Cut(there, "\n")
	head, is := strings.CutPrefix(head, answered)
	status, digits, _ := strings.Cut(head, " ")
	n, err := strconv.Atoi(status)
	digest, digestErr := hex.DecodeString(digits)
	if !whole || !is || err != nil || digestErr != nil || len(digest) != sha256.Size {
		return nil
	}
	return &outcome{Answer: Answer{Status: n, Body: []byte(body), Replayed: true}, digest: [sha256.Size]byte(digest)}
}

// claim is the right to do the work while the others wait; the zero claim, without Redis, keeps nobody waiting.
type claim struct{ key, value string }

// Peeked is a claim that was tried.
type Peeked struct {
	q         Request
	composite string // of q
	claim     claim
	tried     *redis.StatusCmd // what is there; redis.Nil when the claim is set
}

// Peek queues the first try to claim the key on the caller's pipeline, for Do to use once the pipeline has run.
func (r *Room) Peek(ctx context.Context, pipe redis.Pipeliner, q Request) *Peeked {
	return r.peek(ctx, pipe, q)
}

func (r *Room) peek(ctx context.Context, redisOrPipe redis.Cmdable, q Request) *Peeked {
	composite := q.composite()
	c := claim{r.key(composite), claimed + rand.Text()}
	return &Peeked{q, composite, c, redisOrPipe.SetArgs(ctx, c.key, c.value, redis.SetArgs{Mode: "NX", Get: true, TTL: leaseTerm})}
}

// Repeated says, once the pipeline of Peek has run, whether the key was used before: somebody was answered under it, or is
// being answered. Without an answer of Redis it is not known to be. seen may be nil.
func (seen *Peeked) Repeated() bool { return seen != nil && seen.tried.Err() == nil }

// try is Peek in a round trip of its own.
func (r *Room) try(ctx context.Context, q Request) *Peeked {
	ctx, cancel := context.WithTimeout(ctx, ioWithin)
	defer cancel()
	return r.peek(ctx, r.rdb, q)
}

// claim wins the key, or returns what was answered under it. It waits while somebody else has it. seen is the first try.
func (r *Room) claim(ctx context.Context, seen *Peeked) (c claim, prior *outcome, err error) {
	for end := time.Now().Add(waitFor(ctx)); ; seen = r.try(ctx, seen.q) {
		there, err := seen.tried.Result()
		switch {
		case errors.Is(err, redis.Nil):
			return seen.claim, nil, nil
		case ctx.Err() != nil:
			return claim{}, nil, ctx.Err() // who asked has gone, and nothing was begun
		case err != nil || !strings.HasPrefix(there, claimed):
			return claim{}, readValue(there), nil // no answer: Redis is away, or has what cannot be read
		case !time.Now().Before(end):
			return claim{}, nil, problem.New(problem.IdempotencyInProgress, "Please ask again in a moment.", nil).After(time.Second)
		}
		// Also a claim for another request is waited for: it may come to nothing, and then the key was never used.
		select {
		case <-time.After(min(pollEvery, time.Until(end))):
		case <-ctx.Done():
			return claim{}, nil, ctx.Err()
		}
	}
}

// waitFor is how long this request can wait for another.
func waitFor(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return min(waitMost, time.Until(deadline)-answering)
	}
	return waitMost
}

// Drop gives up what Peek claimed, for a request that is refused before it comes to Do; seen may be nil.
func (r *Room) Drop(ctx context.Context, seen *Peeked) {
	if seen != nil && seen.tried.Err() != nil { // redis.Nil when it was claimed; else, without an answer, perhaps
		r.release(ctx, seen.claim)
	}
}

// release lets the next one try at once. If it fails, the claim lapses.
func (r *Room) release(ctx context.Context, c claim) {
	if c == (claim{}) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ioWithin)
	defer cancel()
	lua.Release(ctx, r.rdb, c.key, c.value)
}

// Copy is an answer on record that is not in Redis yet. On a nil Copy everything does nothing.
type Copy struct {
	room *Room
	claim
	answer *outcome
}

// Keep puts the answer where the next one looks first, on a pipeline that lua.Exec runs, unless the claim is not ours any
// more. If that fails, or is left out, the next one waits for the claim to lapse and finds the record.
func (c *Copy) Keep(ctx context.Context, pipe redis.Pipeliner) {
	if c == nil || c.claim == (claim{}) {
		return
	}
	if life := c.answer.until.Sub(c.room.now()); life > 0 {
		lua.Keep(ctx, pipe, c.key, c.value, c.answer.value(), life)
	}
}
