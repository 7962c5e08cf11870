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

// harness is a Limiter with a manual clock for the instance's buckets.
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
	h := &harness{t: t}
	h.clock.Store(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixNano())
	h.Limiter = New(rdb, testKeys, flags.Static(*v), func() time.Time { return time.Unix(0, h.clock.Load()) })
	return h
}

// request counts one request. The result is nil while limits are switched off.
func (h *harness) request(class Class, c Client) *Result {
	ctx := context.Background()
	pipe := h.rdb.Pipeline()
	pending := h.Enqueue(ctx, pipe, class, c)
	lua.Exec(ctx, pipe)
	return h.Resolve(ctx, pending)
}

// countAllowed sends n requests and returns the number of allowed requests.
func (h *harness) countAllowed(n int, class Class, c Client) (allowed int) {
	for range n {
		if got := h.request(class, c); got == nil || !got.Refused {
			allowed++
		}
	}
	return allowed
}

// untilFull returns the time until a bucket in Redis is full.
func (h *harness) untilFull(class Class, kind, name string) time.Duration {
	h.t.Helper()
	full, err := h.rdb.Get(context.Background(), testKeys.Bucket(string(class), kind, name)).Int64()
	if err == redis.Nil {
		return 0
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return time.UnixMicro(full).Sub(h.rdb.Time(context.Background()).Val())
}

// age refills a bucket in Redis as if the time had passed.
func (h *harness) age(by time.Duration, class Class, kind, name string) {
	h.t.Helper()
	ctx, key := context.Background(), testKeys.Bucket(string(class), kind, name)
	full, err := h.rdb.Get(ctx, key).Int64()
	if err != nil {
		h.t.Fatal(err)
	}
	h.rdb.Set(ctx, key, strconv.FormatInt(full-by.Microseconds(), 10), time.Minute)
}

// limits sets the same limits for every class.
func limits(cookie, fingerprint, address int) func(*flags.Values) {
	return func(v *flags.Values) {
		l := flags.Limit{Cookie: cookie, Fingerprint: fingerprint, IP: address}
		v.Limits = flags.Limits{Read: l, Handoff: l, Telemetry: l}
	}
}

func guest(n int) Client {
	return Client{fmt.Sprint("gms_", n), fmt.Sprint("sha256:a", n), fmt.Sprint("sha256:f", n)}
}
