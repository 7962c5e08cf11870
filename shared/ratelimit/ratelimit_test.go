package ratelimit

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"melmastoon.ghasi.io/bff-consumer/shared/flags"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

const noLimit = 1_000_000 // requests per minute that no test reaches

func TestLimiter_EachBucketLimitsItsClient(t *testing.T) {
	for kind, change := range map[string]func(*flags.Values){
		"cookie": limits(4, noLimit, noLimit), "fingerprint": limits(noLimit, 4, noLimit), "address": limits(noLimit, noLimit, 4),
	} {
		t.Run(kind, func(t *testing.T) {
			h := newHarness(t, redistest.New(t), change)
			want := &Result{Policy: "read-" + kind, PerMinute: 4, Reset: 15 * time.Second}
			if diff := cmp.Diff(want, h.request(Read, guest(1))); diff != "" {
				t.Error("first request:", diff)
			}
			got := h.request(Read, guest(1))
			if !got.Refused || got.Policy != want.Policy || got.Reset <= 0 || got.Reset > want.Reset {
				t.Errorf("second request: %+v, want a refusal by %s for at most %s", got, want.Policy, want.Reset)
			}
			if h.request(Read, guest(2)).Refused || h.request(Telemetry, guest(1)).Refused || h.request(Handoff, guest(1)).Refused {
				t.Error("the refusal also applies to another client or class")
			}
			h.age(15*time.Second, Read, kind, map[string]string{"cookie": "gms_1", "fingerprint": "sha256:f1", "address": "sha256:a1"}[kind])
			if h.request(Read, guest(1)).Refused {
				t.Error("refused after the retry time")
			}
		})
	}
}

func TestLimiter_UnknownClientPartIsNotCounted(t *testing.T) {
	h := newHarness(t, redistest.New(t), limits(4, 4, noLimit))
	if n := h.countAllowed(50, Read, Client{Address: "sha256:a"}); n != 50 {
		t.Errorf("%d requests allowed, want 50", n)
	}
	if keys := h.rdb.Keys(t.Context(), "*").Val(); len(keys) != 1 {
		t.Errorf("keys %q, want the address bucket only", keys)
	}
	if got := h.request(Read, Client{}); got != nil {
		t.Errorf("client without buckets: %+v, want nil", got)
	}
}

func TestLimiter_RefusedRequestConsumesNothing(t *testing.T) {
	h := newHarness(t, redistest.New(t), limits(4, 40, 400)) // bursts of 1, 10, 100
	trips := redistest.Count(h.rdb)
	if n := h.countAllowed(1, Read, guest(1)); n != 1 {
		t.Error("the first request was refused")
	}
	if n := trips.TakeCount(); n > 2 { // two if the server did not have the script
		t.Errorf("first request: %d round trips, want at most 2", n)
	}
	fingerprint, address := h.untilFull(Read, "fingerprint", "sha256:f1"), h.untilFull(Read, "address", "sha256:a1")
	if fingerprint <= 0 || address <= 0 {
		t.Fatalf("deficits %s and %s after an allowed request, want more than 0", fingerprint, address)
	}
	trips.TakeCount()
	if n := h.countAllowed(50, Read, guest(1)); n != 0 {
		t.Fatalf("%d requests allowed with an empty cookie bucket, want 0", n)
	}
	if n := trips.TakeCount(); n < 100 || n > 101 { // a count and a refund each; once the refund script
		t.Errorf("%d round trips for 50 refused requests, want 100 or 101", n)
	}
	if f, a := h.untilFull(Read, "fingerprint", "sha256:f1"), h.untilFull(Read, "address", "sha256:a1"); f > fingerprint || a > address {
		t.Errorf("the refused requests consumed %s and %s, want 0", f-fingerprint, a-address)
	}
}

func TestLimiter_DisabledLimitsSendNoCommand(t *testing.T) {
	h := newHarness(t, redistest.New(t), func(v *flags.Values) { v.LimitsEnabled = false })
	pipe := h.rdb.Pipeline()
	pending := h.Enqueue(t.Context(), pipe, Read, guest(1))
	if pending != nil || pipe.Len() != 0 {
		t.Errorf("pending %+v with %d commands, want nil and 0", pending, pipe.Len())
	}
	if got := h.Resolve(t.Context(), pending); got != nil {
		t.Errorf("result %+v, want nil", got)
	}
}

func TestLimiter_LimitsMatchSpecification(t *testing.T) {
	type limit struct{ Cookie, Fingerprint, Address int }
	for _, c := range []struct {
		class    Class
		campaign bool
		want     limit
	}{
		{Read, false, limit{120, 600, 1200}}, {Read, true, limit{120, 600, 1200}},
		{Handoff, false, limit{10, 60, 120}}, {Handoff, true, limit{8, 48, 96}},
		{Telemetry, false, limit{240, 1200, 2400}}, {Telemetry, true, limit{240, 1200, 2400}},
	} {
		t.Run(fmt.Sprintf("%s, campaign %t", c.class, c.campaign), func(t *testing.T) {
			h := newHarness(t, redistest.New(t), func(v *flags.Values) { v.CampaignMode = c.campaign })
			got := limit{
				h.request(c.class, Client{Cookie: "c"}).PerMinute, h.request(c.class, Client{Fingerprint: "f"}).PerMinute,
				h.request(c.class, Client{Address: "a"}).PerMinute,
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			burst := (c.want.Cookie + 3) / 4
			if n := h.countAllowed(burst, c.class, guest(1)); n != burst {
				t.Errorf("%d requests of a burst of %d allowed", n, burst)
			}
		})
	}
	t.Run("smallest limit in campaign mode", func(t *testing.T) {
		h := newHarness(t, redistest.New(t), func(v *flags.Values) { v.CampaignMode = true; v.Limits.Handoff.Cookie = 1 })
		if got := h.request(Handoff, guest(1)); got.Refused || got.PerMinute != 1 {
			t.Errorf("%+v, want an allowed request at 1 per minute", got)
		}
	})
}

func TestLimiter_OverwritesInvalidBucket(t *testing.T) {
	h := newHarness(t, redistest.New(t), limits(8, noLimit, noLimit)) // a burst of 2, one request in 7.5 s
	ctx, key := t.Context(), testKeys.Bucket("read", "cookie", "gms_1")
	for name, write := range map[string]func(){
		"another type": func() { h.rdb.RPush(ctx, key, "x") },
		"not a number": func() { h.rdb.Set(ctx, key, "x", 0) },
		"empty text":   func() { h.rdb.Set(ctx, key, "", 0) },
		"before 1970":  func() { h.rdb.Set(ctx, key, "-5", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			h.rdb.Del(ctx, key)
			write()
			if n := h.countAllowed(3, Read, guest(1)); n != 2 {
				t.Errorf("%d requests allowed, want a full bucket of 2", n)
			}
			if ttl := h.rdb.PTTL(ctx, key).Val(); ttl <= 0 || ttl > 16*time.Second {
				t.Errorf("TTL %s, want at most 16s", ttl)
			}
		})
	}
	t.Run("far future", func(t *testing.T) {
		h.rdb.Set(ctx, key, "9000000000000000", 0) // in the year 2255
		if got := h.request(Read, guest(1)); !got.Refused || got.Reset != 7500*time.Millisecond {
			t.Errorf("%+v, want a refusal for 7.5s", got)
		}
	})
}

func TestLimiter_FailedBucketFallsBackToInstance(t *testing.T) {
	h := newHarness(t, redistest.New(t), limits(4, 40, noLimit))
	request := func() *Result {
		pipe := h.rdb.Pipeline()
		pending := h.Enqueue(t.Context(), pipe, Read, guest(1))
		lua.Exec(t.Context(), pipe)
		pending.buckets[0].cmd.SetErr(errors.New("the shard of the cookie's bucket is not available"))
		return h.Resolve(t.Context(), pending)
	}
	if got := request(); got.Refused || got.Remaining != 0 || got.Policy != "read-cookie" {
		t.Errorf("first request: %+v, want allowed with 0 remaining by read-cookie", got)
	}
	before := h.untilFull(Read, "fingerprint", "sha256:f1")
	if got := request(); !got.Refused || got.Policy != "read-cookie" || got.Reset != 15*time.Second {
		t.Errorf("second request: %+v, want a refusal by read-cookie for 15s", got)
	}
	if after := h.untilFull(Read, "fingerprint", "sha256:f1"); after > before {
		t.Errorf("the refused request consumed %s, want 0", after-before)
	}
}

func TestResult_WritesBothHeaderForms(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	(&Result{Policy: "read-cookie", PerMinute: 120, Remaining: 29, Reset: 500 * time.Millisecond}).WriteHeaders(h)
	want := http.Header{
		"Ratelimit-Limit": {"120"}, "Ratelimit-Remaining": {"29"}, "Ratelimit-Reset": {"1"},
		"Ratelimit": {`"read-cookie";r=29;t=1`}, "Ratelimit-Policy": {`"read-cookie";q=120;w=60`},
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Error(diff)
	}
	(&Result{Refused: true, Policy: "handoff-address", PerMinute: 96, Reset: 7_500_001 * time.Microsecond}).WriteHeaders(h)
	want = http.Header{
		"Ratelimit-Limit": {"96"}, "Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {"8"},
		"Ratelimit": {`"handoff-address";r=0;t=8`}, "Ratelimit-Policy": {`"handoff-address";q=96;w=60`},
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Error("written again:", diff)
	}
}

func TestResult_NamesTightestBucket(t *testing.T) {
	h := newHarness(t, redistest.New(t), nil)
	for n := range 40 { // cookies of one address and fingerprint: bursts of 30, 150 and 300
		c := guest(1)
		c.Cookie = fmt.Sprint("gms_", n)
		h.countAllowed(3, Read, c)
	}
	c := guest(1)
	c.Cookie = "gms_new"
	if got := h.request(Read, c); got.Policy != "read-cookie" || got.Remaining != 29 {
		t.Errorf("after 120 requests: %+v, want 29 remaining by read-cookie", got)
	}
	for n := range 12 {
		c.Cookie = fmt.Sprint("gms_more", n)
		h.countAllowed(3, Read, c)
	}
	c.Cookie = "gms_newest"
	if got := h.request(Read, c); got.Policy != "read-fingerprint" || got.Remaining > 28 || got.PerMinute != 600 {
		t.Errorf("after 157 requests: %+v, want at most 28 remaining by read-fingerprint", got)
	}
}
