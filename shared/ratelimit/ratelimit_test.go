package ratelimit

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/flags"
	"melmastoon.ghasi.io/bff-consumer/shared/lua"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

const noLimit = 1_000_000 // a minute

func TestLimiter_EachBucketLimitsItsClient(t *testing.T) {
	for kind, change := range map[string]func(*flags.Values){
		"cookie": limits(4, noLimit, noLimit), "fingerprint": limits(noLimit, 4, noLimit), "address": limits(noLimit, noLimit, 4),
	} {
		d := newHarness(t, redistest.New(t), change)
		if s := d.request(Read, guest(1)); s.Refused || s.Remaining != 0 || s.PerMinute != 4 || s.Policy != "read-"+kind || s.Reset != 15*time.Second {
			t.Errorf("%s: first %+v", kind, s)
		}
		s := d.request(Read, guest(1))
		if !s.Refused || s.Policy != "read-"+kind || s.Reset <= 0 || s.Reset > 15*time.Second {
			t.Errorf("%s: second %+v", kind, s)
		}
		if d.request(Read, guest(2)).Refused || d.request(Telemetry, guest(1)).Refused || d.request(Handoff, guest(1)).Refused {
			t.Errorf("%s: another client or class pays for it", kind)
		}
		d.age(15*time.Second, Read, kind, map[string]string{"cookie": "gms_1", "fingerprint": "sha256:f1", "address": "sha256:a1"}[kind])
		if d.request(Read, guest(1)).Refused {
			t.Errorf("%s: refused after the time", kind)
		}
	}
}

func TestLimiter_UnknownClientPartIsNotCounted(t *testing.T) {
	d := newHarness(t, redistest.New(t), limits(4, 4, noLimit))
	if n := d.countAllowed(50, Read, Client{Address: "sha256:a"}); n != 50 {
		t.Errorf("%d of 50 let through", n)
	}
	if keys := d.rdb.Keys(t.Context(), "*").Val(); len(keys) != 1 {
		t.Errorf("%v", keys)
	}
	if s := d.request(Read, Client{}); s != nil {
		t.Errorf("nobody at all: %+v", s)
	}
}

func TestLimiter_RefusedRequestConsumesNothing(t *testing.T) {
	d := newHarness(t, redistest.New(t), limits(4, 40, 400)) // bursts of 1, 10, 100
	trips := redistest.Count(d.rdb)
	if d.countAllowed(1, Read, guest(1)) != 1 || trips.TakeCount() > 2 { // the second, because the server had to be told the script
		t.Error("the first request")
	}
	fingerprint, address := d.untilFull(Read, "fingerprint", "sha256:f1"), d.untilFull(Read, "address", "sha256:a1")
	if fingerprint <= 0 || address <= 0 {
		t.Fatalf("lack %s and %s", fingerprint, address)
	}
	trips.TakeCount()
	if d.countAllowed(50, Read, guest(1)) != 0 {
		t.Fatal("the cookie's bucket is empty")
	}
	if n := trips.TakeCount(); n < 100 || n > 101 { // one in, one to give back; once the script
		t.Errorf("%d round trips for 50 refused requests", n)
	}
	if f, a := d.untilFull(Read, "fingerprint", "sha256:f1"), d.untilFull(Read, "address", "sha256:a1"); f > fingerprint || a > address {
		t.Errorf("they consumed %s and %s", f-fingerprint, a-address)
	}
}

func TestLimiter_DisabledLimitsSendNoCommand(t *testing.T) {
	d := newHarness(t, redistest.New(t), func(v *flags.Values) { v.LimitsEnabled = false })
	pipe := d.rdb.Pipeline()
	if asked := d.Enqueue(t.Context(), pipe, Read, guest(1)); asked != nil || pipe.Len() != 0 || d.Resolve(t.Context(), asked) != nil {
		t.Errorf("%+v, %d commands", asked, pipe.Len())
	}
}

func TestLimiter_LimitsMatchSpecification(t *testing.T) {
	type limit struct{ cookie, fingerprint, address int }
	for _, c := range []struct {
		class    Class
		campaign bool
		want     limit
	}{
		{Read, false, limit{120, 600, 1200}}, {Read, true, limit{120, 600, 1200}},
		{Handoff, false, limit{10, 60, 120}}, {Handoff, true, limit{8, 48, 96}},
		{Telemetry, false, limit{240, 1200, 2400}}, {Telemetry, true, limit{240, 1200, 2400}},
	} {
		d := newHarness(t, redistest.New(t), func(v *flags.Values) { v.CampaignMode = c.campaign })
		got := limit{
			d.request(c.class, Client{Cookie: "c"}).PerMinute, d.request(c.class, Client{Fingerprint: "f"}).PerMinute,
			d.request(c.class, Client{Address: "a"}).PerMinute,
		}
		if got != c.want {
			t.Errorf("%s, campaign %v: %+v", c.class, c.campaign, got)
		}
		burst := (c.want.cookie + 3) / 4
		if n := d.countAllowed(burst, c.class, guest(1)); n != burst {
			t.Errorf("%s, campaign %v: %d of a burst of %d", c.class, c.campaign, n, burst)
		}
	}
	d := newHarness(t, redistest.New(t), func(v *flags.Values) { v.CampaignMode = true; v.Limits.Handoff.Cookie = 1 })
	if s := d.request(Handoff, guest(1)); s.Refused || s.PerMinute != 1 {
		t.Errorf("the least limit in campaign mode: %+v", s)
	}
}

func TestLimiter_OverwritesInvalidBucket(t *testing.T) {
	d := newHarness(t, redistest.New(t), limits(8, noLimit, noLimit)) // a burst of 2, one in 7.5 s
	ctx, key := t.Context(), testKeys.Bucket("read", "cookie", "gms_1")
	for name, write := range map[string]func(){
		"of another type": func() { d.rdb.RPush(ctx, key, "x") },
		"no number":       func() { d.rdb.Set(ctx, key, "x", 0) },
		"empty text":      func() { d.rdb.Set(ctx, key, "", 0) },
		"long ago":        func() { d.rdb.Set(ctx, key, "-5", 0) },
	} {
		d.rdb.Del(ctx, key)
		write()
		if n := d.countAllowed(3, Read, guest(1)); n != 2 {
			t.Errorf("%s: %d let through", name, n)
		}
		if ttl := d.rdb.PTTL(ctx, key).Val(); ttl <= 0 || ttl > 16*time.Second {
			t.Errorf("%s: lives %s", name, ttl)
		}
	}
	d.rdb.Set(ctx, key, "9000000000000000", 0) // in the year 2255
	if s := d.request(Read, guest(1)); !s.Refused || s.Reset != 7500*time.Millisecond {
		t.Errorf("in the far future: %+v", s)
	}
}

func TestLimiter_FailedBucketFallsBackToInstance(t *testing.T) {
	d := newHarness(t, redistest.New(t), limits(4, 40, noLimit))
	ask := func() *Result {
		pipe := d.rdb.Pipeline()
		asked := d.Enqueue(t.Context(), pipe, Read, guest(1))
		lua.Exec(t.Context(), pipe)
		asked.buckets[0].cmd.SetErr(errors.New("the cookie's shard is away"))
		return d.Resolve(t.Context(), asked)
	}
	if s := ask(); s.Refused || s.Remaining != 0 || s.Policy != "read-cookie" {
		t.Errorf("first %+v", s)
	}
	before := d.untilFull(Read, "fingerprint", "sha256:f1")
	if s := ask(); !s.Refused || s.Policy != "read-cookie" || s.Reset != 15*time.Second {
		t.Errorf("second %+v", s)
	}
	if after := d.untilFull(Read, "fingerprint", "sha256:f1"); after > before {
		t.Errorf("the refused one consumed %s", after-before)
	}
}

func TestResult_WritesBothHeaderForms(t *testing.T) {
	h := http.Header{}
	(&Result{Policy: "read-cookie", PerMinute: 120, Remaining: 29, Reset: 500 * time.Millisecond}).WriteHeaders(h)
	want := map[string]string{
		"RateLimit-Limit": "120", "RateLimit-Remaining": "29", "RateLimit-Reset": "1",
		"RateLimit": `"read-cookie";r=29;t=1`, "RateLimit-Policy": `"read-cookie";q=120;w=60`,
	}
	for name, value := range want {
		if got := h.Get(name); got != value {
			t.Errorf("%s: %s", name, got)
		}
	}
	if len(h) != len(want) {
		t.Error(h)
	}
	(&Result{Refused: true, Policy: "handoff-address", PerMinute: 96, Reset: 7_500_001 * time.Microsecond}).WriteHeaders(h)
	if got := h.Get("RateLimit") + " " + h.Get("RateLimit-Reset"); got != `"handoff-address";r=0;t=8 8` || len(h) != len(want) {
		t.Error(got, h)
	}
}

func TestResult_NamesTightestBucket(t *testing.T) {
	d := newHarness(t, redistest.New(t), nil)
	for n := range 40 { // cookies of one address and fingerprint: bursts of 30, 150 and 300
		c := guest(1)
		c.Cookie = fmt.Sprint("gms_", n)
		d.countAllowed(3, Read, c)
	}
	c := guest(1)
	c.Cookie = "gms_new"
	if s := d.request(Read, c); s.Policy != "read-cookie" || s.Remaining != 29 {
		t.Errorf("%+v", s)
	}
	for n := range 12 {
		c.Cookie = fmt.Sprint("gms_more", n)
		d.countAllowed(3, Read, c)
	}
	c.Cookie = "gms_newest"
	if s := d.request(Read, c); s.Policy != "read-fingerprint" || s.Remaining > 28 || s.PerMinute != 600 {
		t.Errorf("%+v", s)
	}
}
