// Package ratelimit owns how much one client may ask for: a bucket each for its cookie, its address and its fingerprint, in
// Redis, and in this process while Redis is away. It never fails, and never knows what is asked for.
package ratelimit

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/flags"
	"melmastoon.ghasi.io/bff-consumer/shared/keyspace"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
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

// Room counts requests. Safe for concurrent use.
type Room struct {
	rdb   redis.UniversalClient
	keys  keyspace.Keys
	flags *flags.Source
	local *local
}

// New makes a Room. now is the clock while Redis is away; else it is the server's.
func New(rdb redis.UniversalClient, keys keyspace.Keys, flags *flags.Source, now func() time.Time) *Room {
	return &Room{rdb, keys, flags, newLocal(now)}
}

// bucket is one of a request's.
type bucket struct {
	kind  string
	key   string
	pace  pace
	cmd   *redis.Cmd
	taken bool
	lack  time.Duration // until it is full
}

// Asked is a request that is being counted.
type Asked struct {
	class   Class
	buckets []*bucket
}

// Peek puts a request on the caller's pipeline, which lua.Exec runs, to take one from each bucket of the client; nil while
// limits are off.
func (r *Room) Peek(ctx context.Context, pipe redis.Pipeliner, class Class, c Client) *Asked {
	now := r.flags.Current()
	if !now.LimitsEnabled {
		return nil
	}
	limit := limitOf(now, class)
	a := &Asked{class: class, buckets: make([]*bucket, 0, 3)}
	for _, b := range [...]struct {
		kind, name string
		perMinute  int
	}{
		{"cookie", c.Cookie, limit.Cookie}, {"fingerprint", c.Fingerprint, limit.Fingerprint}, {"address", c.Address, limit.IP},
	} {
		if b.name == "" {
			continue
		}
		key, pace := r.keys.Bucket(string(class), b.kind, b.name), paceOf(b.perMinute)
		cmd := lua.Spend(ctx, pipe, key, pace.gain, pace.whole())
		a.buckets = append(a.buckets, &bucket{kind: b.kind, key: key, pace: pace, cmd: cmd})
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

// Instead counts a request in another class than it was counted in: what it took is given back, and one is taken from
// each bucket of the other, in one round trip of at most 100 ms. Settle is for what it returns.
func (r *Room) Instead(ctx context.Context, a *Asked, class Class, c Client) *Asked {
	if a == nil {
		return nil
	}
	pipe := r.rdb.Pipeline()
	for _, b := range a.buckets {
		if answer, err := lua.ReadSpent(b.cmd); err == nil && answer.Taken {
			lua.Refund(ctx, pipe, b.key, b.pace.gain)
		}
	}
	other := r.Peek(ctx, pipe, class, c)
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundWithin)
	defer cancel()
	lua.Exec(within, pipe)
	return other
}

// refundWithin is how long Redis may take to be given back what a refused request took.
const refundWithin = 100 * time.Millisecond

// Settle says whether the request is let through, once the pipeline of Peek has run; nil while limits are off. A bucket
// that Redis did not answer for is the one of this instance. A refused request consumes nothing: what it took of other
// buckets is given back, in a round trip of at most 100 ms. If that fails, they have it back when they gain the next one.
func (r *Room) Settle(ctx context.Context, a *Asked) *Standing {
	if a == nil || len(a.buckets) == 0 {
		return nil
	}
	var spent, unanswered []*bucket
	refused := false
	for _, b := range a.buckets {
		answer, err := lua.ReadSpent(b.cmd)
		switch {
		case err != nil:
			unanswered = append(unanswered, b)
			continue
		case answer.Taken:
			spent = append(spent, b)
		}
		b.taken, b.lack = answer.Taken, answer.Lack
		refused = refused || !answer.Taken
	}
	if !refused {
		r.local.spend(unanswered)
		for _, b := range unanswered {
			refused = refused || !b.taken
		}
	}
	if refused {
		r.giveBack(ctx, spent)
		return a.refusal()
	}
	return a.standing()
}

// giveBack undoes what a refused request took, also for a client that hung up.
func (r *Room) giveBack(ctx context.Context, spent []*bucket) {
	if len(spent) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refundWithin)
	defer cancel()
	pipe := r.rdb.Pipeline()
	for _, b := range spent {
		lua.Refund(ctx, pipe, b.key, b.pace.gain)
	}
	lua.Exec(ctx, pipe)
}

// standing is that of a client who is let through: by the bucket that holds least.
func (a *Asked) standing() *Standing {
	tightest := a.buckets[0]
	for _, b := range a.buckets[1:] {
		if b.pace.left(b.lack) < tightest.pace.left(tightest.lack) {
			tightest = b
		}
	}
	return &Standing{
		Policy: a.policy(tightest), PerMinute: tightest.pace.perMinute,
		Remaining: tightest.pace.left(tightest.lack), Reset: tightest.lack,
	}
}

// refusal is the standing of a client who is not: by the empty bucket that takes longest to hold something again.
func (a *Asked) refusal() *Standing {
	var longest *bucket
	for _, b := range a.buckets {
		if !b.taken && (longest == nil || b.pace.wait(b.lack) > longest.pace.wait(longest.lack)) {
			longest = b
		}
	}
	return &Standing{
		Refused: true, Policy: a.policy(longest), PerMinute: longest.pace.perMinute, Reset: longest.pace.wait(longest.lack),
	}
}

func (a *Asked) policy(b *bucket) string { return string(a.class) + "-" + b.kind }
