package ratelimit

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/flags"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
)

var testKeys = redisclient.Keys{Env: "test"}

// harness is a room with a clock of its own for when Redis is away, and a way to count one request.
type harness struct {
	*Limiter
	t     testing.TB
	clock atomic.Int64 // ns
}

func newHarness(t testing.TB, rdb redis.UniversalClient, change func(*flags.Values)) *harness {
	v := flags.Defaults()
	if change != nil {
		change(v)
	}
	d := &harness{t: t}
	d.clock.Store(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixNano())
	d.Limiter = New(rdb, testKeys, flags.Static(*v), func() time.Time { return time.Unix(0, d.clock.Load()) })
	return d
}

// request counts one request; nil while limits are off.
func (d *harness) request(class Class, c Client) *Result {
	ctx := context.Background()
	pipe := d.rdb.Pipeline()
	asked := d.Enqueue(ctx, pipe, class, c)
	lua.Exec(ctx, pipe)
	return d.Resolve(ctx, asked)
}

// countAllowed is how many of n requests are let through.
func (d *harness) countAllowed(n int, class Class, c Client) (through int) {
	for range n {
		if s := d.request(class, c); s == nil || !s.Refused {
			through++
		}
	}
	return through
}

// untilFull is what a bucket in Redis lacks of being full, give or take what it gained since.
func (d *harness) untilFull(class Class, kind, name string) time.Duration {
	d.t.Helper()
	full, err := d.rdb.Get(context.Background(), testKeys.Bucket(string(class), kind, name)).Int64()
	if err == redis.Nil {
		return 0
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return time.UnixMicro(full).Sub(d.rdb.Time(context.Background()).Val())
}

// age makes a bucket in Redis older, as waiting would.
func (d *harness) age(by time.Duration, class Class, kind, name string) {
	d.t.Helper()
	ctx, key := context.Background(), testKeys.Bucket(string(class), kind, name)
	full, err := d.rdb.Get(ctx, key).Int64()
	if err != nil {
		d.t.Fatal(err)
	}
	d.rdb.Set(ctx, key, strconv.FormatInt(full-by.Microseconds(), 10), time.Minute)
}

// limits are the same for every class.
func limits(cookie, fingerprint, address int) func(*flags.Values) {
	return func(v *flags.Values) {
		l := flags.Limit{Cookie: cookie, Fingerprint: fingerprint, IP: address}
		v.Limits = flags.Limits{Read: l, Handoff: l, Telemetry: l}
	}
}

func guest(n int) Client {
	return Client{fmt.Sprint("gms_", n), fmt.Sprint("sha256:a", n), fmt.Sprint("sha256:f", n)}
}
