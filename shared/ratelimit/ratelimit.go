// Package ratelimit owns how much one client may ask for: a bucket each for its cookie, its address and its fingerprint, in
// Redis, and in this process while Redis is away. It never fails, and never knows what is asked for.
package ratelimit

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/flags"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
)

// Class is what kind of route is asked for; each has limits and buckets of its own.
type Class string

// The classes of routes.
const (
	Read      Class = "read" // whatever is neither of the others
	Handoff   Class = "handoff"
	Telemetry Class = "telemetry"
)

// Client is who asks, one name for each bucket: hashes, or ids that are ours. One that is empty is not known, and has no
// bucket. Fingerprint is that of a device on one line, session.Client.Group: alone it would be a crowd's (decision 26).
type Client struct{ Cookie, Address, Fingerprint string }

// Limiter counts requests. Safe for concurrent use.
type Limiter struct {
	rdb   redis.UniversalClient
	keys  redisclient.Keys
	flags *flags.Source
	local *localLimiter
}

// New makes a Room. now is the clock while Redis is away; else it is the server's.
func New(rdb redis.UniversalClient, keys redisclient.Keys, flags *flags.Source, now func() time.Time) *Limiter {
	return &Limiter{rdb, keys, flags, newLocalLimiter(now)}
}

// bucket is one of a request's.
type bucket struct {
	kind      string
	key       string
	rate      rate
	cmd       *redis.Cmd
	taken     bool
	untilFull time.Duration // until it is full
}

// Pending is a request that is being counted.
type Pending struct {
	class   Class
	buckets []*bucket
}

// Enqueue puts a request on the caller's pipeline, which lua.Exec runs, to take one from each bucket of the client; nil while
// limits are off.
func (r *Limiter) Enqueue(ctx context.Context, pipe redis.Pipeliner, class Class, c Client) *Pending {
	now := r.flags.Current()
	if !now.LimitsEnabled {
		return nil
	}
	limit := limitOf(now, class)
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
		key, pace := r.keys.Bucket(string(class), b.kind, b.name), newRate(b.perMinute)
		cmd := lua.Spend(ctx, pipe, key, pace.interval, pace.fillTime())
		a.buckets = append(a.buckets, &bucket{kind: b.kind, key: key, rate: pace, cmd: cmd})
	}
	return a
}

// limitOf is the limit of a class now. In campaign mode handoffs have four fifths of theirs.
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

// Reclassify counts a request in another class than it was counted in: what it took is given back, and one is taken from
// each bucket of the other, in one round trip of at most 100 ms. Settle is for what it returns.
func (r *Limiter) Reclassify(ctx context.Context, a *Pending, class Class, c Client) *Pending {
	if a == nil {
		return nil
	}
	pipe := r.rdb.Pipeline()
	for _, b := range a.buckets {
		if answer, err := lua.ParseSpend(b.cmd); err == nil && answer.Taken {
			lua.Refund(ctx, pipe, b.key, b.rate.interval)
		}
	}
	other := r.Enqueue(ctx, pipe, class, c)
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundTimeout)
	defer cancel()
	lua.Exec(within, pipe)
	return other
}

// refundTimeout is how long Redis may take to be given back what a refused request took.
const refundTimeout = 100 * time.Millisecond

// Resolve says whether the request is let through, once the pipeline of Peek has run; nil while limits are off. A bucket
// that Redis did not answer for is the one of this instance. A refused request consumes nothing: what it took of other
// buckets is given back, in a round trip of at most 100 ms. If that fails, they have it back when they gain the next one.
func (r *Limiter) Resolve(ctx context.Context, a *Pending) *Result {
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
		r.local.spend(unanswered)
		for _, b := range unanswered {
			refused = refused || !b.taken
		}
	}
	if refused {
		r.refund(ctx, spent)
		return a.refusedResult()
	}
	return a.allowedResult()
}

// refund undoes what a refused request took, also for a client that hung up.
func (r *Limiter) refund(ctx context.Context, spent []*bucket) {
	if len(spent) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundTimeout)
	defer cancel()
	pipe := r.rdb.Pipeline()
	for _, b := range spent {
		lua.Refund(ctx, pipe, b.key, b.rate.interval)
	}
	lua.Exec(ctx, pipe)
}

// allowedResult is that of a client who is let through: by the bucket that holds least.
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

// refusedResult is the standing of a client who is not: by the empty bucket that takes longest to hold something again.
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
