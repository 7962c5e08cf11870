// Package ratelimit limits the requests of a client. A request is counted in three token buckets:
// of the client's cookie, fingerprint and address. The buckets are in Redis; without Redis each
// instance counts in memory. The package never returns an error and does not read the request.
package ratelimit

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/flags"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
)

// Class is a class of routes. Each class has separate limits and buckets.
type Class string

// The classes of routes.
const (
	Read      Class = "read" // every route outside the two classes below
	Handoff   Class = "handoff"
	Telemetry Class = "telemetry"
)

// Client names the buckets of a client by hashes or by ids of the service. An empty name is unknown
// and has no bucket. Fingerprint is session.Client.GroupHash, the hash of fingerprint and address
// group: many devices share a fingerprint alone (decision 26).
type Client struct{ Cookie, Address, Fingerprint string }

// Limiter counts requests. Safe for concurrent use.
type Limiter struct {
	rdb   redis.UniversalClient
	keys  redisclient.Keys
	flags *flags.Source
	local *localLimiter
}

// New returns a Limiter, does not dial and never fails. Buckets in Redis use the clock of the Redis
// server; now is the clock of the instance's own buckets, which take up to 8 MB. No argument may be
// nil.
func New(rdb redis.UniversalClient, keys redisclient.Keys, flags *flags.Source, now func() time.Time) *Limiter {
	return &Limiter{rdb, keys, flags, newLocalLimiter(now)}
}

// bucket is a bucket of a request.
type bucket struct {
	kind      string
	key       string
	rate      rate
	cmd       *redis.Cmd
	taken     bool
	untilFull time.Duration
}

// Pending is the queued count of a request. Pass a Pending to Resolve after the pipeline has run.
type Pending struct {
	class   Class
	buckets []*bucket
}

// Enqueue queues a run of spend.lua per bucket of the client, at most three, on the caller's
// pipeline. The caller runs the pipeline with lua.Exec; counting costs no additional round trip.
// While limits are switched off, Enqueue queues no command and returns nil; for a client without
// names it queues no command and returns an empty Pending. Enqueue does no I/O, takes no lock and
// never fails; it may start the background refresh of the flags. A class other than the three
// counts by the limits of Read, in buckets of its own.
func (l *Limiter) Enqueue(ctx context.Context, pipe redis.Pipeliner, class Class, c Client) *Pending {
	values := l.flags.Current()
	if !values.LimitsEnabled {
		return nil
	}
	limit := limitOf(values, class)
	a := &Pending{class: class, buckets: make([]*bucket, 0, 3)}
	for _, b := range [...]struct {
		kind, name string
		perMinute  int
	}{
		{"cookie", c.Cookie, limit.Cookie}, {"fingerprint", c.Fingerprint, limit.Fingerprint}, {"address", c.Address, limit.IP},
	} {
		if b.name == "" {
			continue
		}
		key, refill := l.keys.Bucket(string(class), b.kind, b.name), newRate(b.perMinute)
		cmd := lua.Spend(ctx, pipe, key, refill.interval, refill.fillTime())
		a.buckets = append(a.buckets, &bucket{kind: b.kind, key: key, rate: refill, cmd: cmd})
	}
	return a
}

// limitOf returns the current limit of a class. Campaign mode lowers the limits of handoffs to four
// fifths.
func limitOf(v *flags.Values, class Class) flags.Limit {
	switch class {
	case Handoff:
		l := v.Limits.Handoff
		if v.CampaignMode {
			l = flags.Limit{Cookie: max(l.Cookie*4/5, 1), IP: max(l.IP*4/5, 1), Fingerprint: max(l.Fingerprint*4/5, 1)}
		}
		return l
	case Telemetry:
		return v.Limits.Telemetry
	default:
		return v.Limits.Read
	}
}

// Reclassify moves a counted request to another class. Call Reclassify instead of Resolve for a,
// after the pipeline of Enqueue has run. Reclassify refunds the request to the old buckets that had
// a request left, takes a request from each bucket of the new class, and returns the Pending for
// Resolve. This costs an additional round trip of at most 100 ms, two within the same limit if the
// server does not know a script, and ignores the caller's cancellation and deadline. It never
// fails: without Redis the old buckets refill with time, and Resolve uses the instance's buckets.
// Reclassify returns nil, without a round trip, if a is nil; if limits are switched off by now, it
// refunds and returns nil.
func (l *Limiter) Reclassify(ctx context.Context, a *Pending, class Class, c Client) *Pending {
	if a == nil {
		return nil
	}
	pipe := l.rdb.Pipeline()
	for _, b := range a.buckets {
		if answer, err := lua.ParseSpend(b.cmd); err == nil && answer.Taken {
			lua.Refund(ctx, pipe, b.key, b.rate.interval)
		}
	}
	moved := l.Enqueue(ctx, pipe, class, c)
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundTimeout)
	defer cancel()
	lua.Exec(within, pipe)
	return moved
}

// refundTimeout bounds the round trip of a refund.
const refundTimeout = 100 * time.Millisecond

// Resolve decides whether a request is allowed. Call Resolve once, after the pipeline of Enqueue
// has run. The result is nil, and the request allowed, if a is nil (limits are switched off) or if
// the client has no bucket. For each bucket without an answer from Redis (no reply, an error reply
// or a pipeline that never ran), Resolve takes the request from the instance's bucket, unless Redis
// refuses another bucket: without Redis the limits hold per instance. That takes a mutex of the
// instance for a moment.
//
// An allowed request costs no round trip. A refused request consumes no quota: Resolve refunds the
// buckets that had a request left, in a round trip of at most 100 ms (none if Redis took no
// request), and ignores the caller's cancellation and deadline. If the refund fails, these buckets
// are short of one request until the next refill interval ends. Resolve never fails. Safe for
// concurrent use with different a.
func (l *Limiter) Resolve(ctx context.Context, a *Pending) *Result {
	if a == nil || len(a.buckets) == 0 {
		return nil
	}
	var spent, unanswered []*bucket
	refused := false
	for _, b := range a.buckets {
		answer, err := lua.ParseSpend(b.cmd)
		switch {
		case err != nil:
			unanswered = append(unanswered, b)
			continue
		case answer.Taken:
			spent = append(spent, b)
		}
		b.taken, b.untilFull = answer.Taken, answer.UntilFull
		refused = refused || !answer.Taken
	}
	if !refused {
		l.local.spend(unanswered)
		for _, b := range unanswered {
			refused = refused || !b.taken
		}
	}
	if refused {
		l.refund(ctx, spent)
		return a.refusedResult()
	}
	return a.allowedResult()
}

// refund returns a request to each bucket in Redis, even if the client disconnected, and ignores
// errors.
func (l *Limiter) refund(ctx context.Context, spent []*bucket) {
	if len(spent) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundTimeout)
	defer cancel()
	pipe := l.rdb.Pipeline()
	for _, b := range spent {
		lua.Refund(ctx, pipe, b.key, b.rate.interval)
	}
	lua.Exec(ctx, pipe)
}

// allowedResult describes the bucket with the fewest requests left.
func (a *Pending) allowedResult() *Result {
	tightest := a.buckets[0]
	for _, b := range a.buckets[1:] {
		if b.rate.remaining(b.untilFull) < tightest.rate.remaining(tightest.untilFull) {
			tightest = b
		}
	}
	return &Result{
		Policy: a.policy(tightest), PerMinute: tightest.rate.perMinute,
		Remaining: tightest.rate.remaining(tightest.untilFull), Reset: tightest.untilFull,
	}
}

// refusedResult describes the empty bucket with the longest wait.
func (a *Pending) refusedResult() *Result {
	var longest *bucket
	for _, b := range a.buckets {
		if !b.taken && (longest == nil || b.rate.retryAfter(b.untilFull) > longest.rate.retryAfter(longest.untilFull)) {
			longest = b
		}
	}
	return &Result{
		Refused: true, Policy: a.policy(longest), PerMinute: longest.rate.perMinute, Reset: longest.rate.retryAfter(longest.untilFull),
	}
}

func (a *Pending) policy(b *bucket) string { return string(a.class) + "-" + b.kind }
