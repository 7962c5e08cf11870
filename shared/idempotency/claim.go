package idempotency

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/go-json-experiment/json"
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

// kept is the value of a key in Redis, as JSON: a claim while the work is done, the answer afterwards.
type kept struct {
	Digest []byte `json:"digest"`
	Claim  string `json:"claim,omitempty"`
	Status int    `json:"status,omitzero"`
	Body   string `json:"body,omitempty"`
}

// claim is the right to do the work while the others wait; the zero claim, without Redis, keeps nobody waiting.
type claim struct{ key, value string }

func (r *Room) newClaim(q Request) claim {
	value, err := json.Marshal(kept{Digest: q.Digest[:], Claim: rand.Text()})
	if err != nil {
		panic(err) // unreachable: bytes and a string
	}
	return claim{r.key(q.composite()), string(value)}
}

// Peeked is a claim that was tried in a round trip of the caller's.
type Peeked struct {
	q     Request
	claim claim
	tried *redis.StatusCmd
}

// Peek queues the first try to claim the key on the caller's pipeline, for Do to use once the pipeline has run.
func (r *Room) Peek(ctx context.Context, pipe redis.Pipeliner, q Request) *Peeked {
	c := r.newClaim(q)
	return &Peeked{q, c, c.try(ctx, pipe)}
}

// try sets the claim unless something is there, which is the reply; redis.Nil when the claim is set.
func (c claim) try(ctx context.Context, redisOrPipe redis.Cmdable) *redis.StatusCmd {
	return redisOrPipe.SetArgs(ctx, c.key, c.value, redis.SetArgs{Mode: "NX", Get: true, TTL: leaseTerm})
}

// claim wins the key, or returns what was answered under it. It waits while somebody else has it.
func (r *Room) claim(ctx context.Context, q Request, seen *Peeked) (c claim, prior *outcome, err error) {
	if seen != nil && seen.q != q { // tried for a session that the guest turned out not to have
		r.release(ctx, seen.claim)
		seen = nil
	}
	wait, cancel := context.WithTimeout(ctx, waitFor(ctx))
	defer cancel()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for {
		var there string
		if seen != nil {
			c = seen.claim
			there, err = seen.tried.Result()
			seen = nil
		} else {
			c = r.newClaim(q)
			there, err = r.try(ctx, c)
		}
		switch {
		case errors.Is(err, redis.Nil):
			return c, nil, nil
		case ctx.Err() != nil:
			return claim{}, nil, ctx.Err() // who asked has gone, and nothing was begun
		}
		var k kept
		if err != nil || json.Unmarshal([]byte(there), &k) != nil || len(k.Digest) != sha256.Size {
			return claim{}, nil, nil // Redis is away, or has what cannot be read
		}
		if k.Status != 0 {
			return claim{}, &outcome{
				Answer: Answer{Status: k.Status, Body: []byte(k.Body), Replayed: true}, digest: [sha256.Size]byte(k.Digest),
			}, nil
		}
		// Also a claim for another request is waited for: it may come to nothing, and then the key was never used.
		select {
		case <-poll.C:
		case <-wait.Done():
			if ctx.Err() != nil {
				return claim{}, nil, ctx.Err()
			}
			return claim{}, nil, problem.New(problem.IdempotencyInProgress, "Please ask again in a moment.", nil).After(time.Second)
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

func (r *Room) try(ctx context.Context, c claim) (there string, err error) {
	ctx, cancel := context.WithTimeout(ctx, ioWithin)
	defer cancel()
	return c.try(ctx, r.rdb).Result()
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
	life := c.answer.until.Sub(c.room.now())
	value, err := json.Marshal(kept{Digest: c.answer.digest[:], Status: c.answer.Status, Body: string(c.answer.Body)})
	if err != nil || life <= 0 {
		return // the error is unreachable: the body is JSON, and so UTF-8
	}
	lua.Keep(ctx, pipe, c.key, c.value, string(value), life)
}
