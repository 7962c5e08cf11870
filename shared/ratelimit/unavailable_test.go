package ratelimit

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/redisclient"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

func TestLimiter_WithoutRedisInstanceLimits(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t)
	rdb := redisclient.Open(redisclient.Config{Addr: server.Addr})
	defer rdb.Close()
	// bursts of 10, 50, 100; one request in 1.5 s, 0.3 s, 0.15 s
	h := newHarness(t, rdb, limits(40, 200, 400))
	h.request(Read, guest(1))
	server.Stop()
	if n := h.countAllowed(200, Read, guest(1)); n != 10 {
		t.Errorf("%d requests allowed, want 10", n)
	}
	if got := h.request(Read, guest(1)); !got.Refused || got.Policy != "read-cookie" || got.Reset != 1500*time.Millisecond {
		t.Errorf("%+v, want a refusal by read-cookie for 1.5s", got)
	}
	c := guest(1)
	// the refused requests took nothing from the fingerprint's bucket
	for _, c.Cookie = range []string{"gms_a", "gms_b", "gms_c", "gms_d"} {
		if n := h.countAllowed(20, Read, c); n != 10 {
			t.Errorf("%s: %d requests allowed, want 10", c.Cookie, n)
		}
	}
	c.Cookie = "gms_e"
	if n := h.countAllowed(20, Read, c); n != 0 {
		t.Errorf("%d requests allowed with an empty fingerprint bucket, want 0", n)
	}
	h.clock.Add(int64(300 * time.Millisecond))
	if n := h.countAllowed(5, Read, c); n != 1 {
		t.Errorf("%d requests allowed after one interval, want 1", n)
	}
	server.Start()
	deadline, retry := time.After(15*time.Second), time.NewTicker(5*time.Millisecond)
	defer retry.Stop()
	for rdb.Ping(t.Context()).Err() != nil {
		select {
		case <-retry.C:
		case <-deadline:
			t.Fatal("no reply from Redis within 15s of its start")
		}
	}
	if got := h.request(Read, c); got.Refused {
		t.Errorf("with Redis again: %+v, want an allowed request", got)
	}
	if keys := server.Client().Keys(t.Context(), "*").Val(); len(keys) != 3 {
		t.Errorf("with Redis again: keys %q, want three buckets", keys)
	}
}

func TestLimiter_NoRequestFailsWhileRedisRestarts(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t)
	rdb := redisclient.Open(redisclient.Config{Addr: server.Addr})
	defer rdb.Close()
	h := newHarness(t, rdb, nil)
	var requests, refused atomic.Int64
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			for i := range 100 { // four requests per client, far from every limit
				got := h.request(Read, guest(n*100+i/4))
				requests.Add(1)
				if got == nil || got.Refused {
					refused.Add(1)
				}
				if n == 0 && i%25 == 0 {
					server.Stop()
				}
				if n == 0 && i%25 == 12 {
					server.Start()
				}
			}
		})
	}
	all.Wait()
	if requests.Load() != 2000 || refused.Load() != 0 {
		t.Errorf("%d requests, %d refused; want 2000 and 0", requests.Load(), refused.Load())
	}
}

func TestLocalLimiter_BucketCountIsBounded(t *testing.T) {
	t.Parallel()
	h := newHarness(t, nil, nil)
	spend := func(n int) bool {
		b := &bucket{key: guest(n).Cookie, rate: newRate(4)}
		h.local.spend([]*bucket{b})
		return b.taken
	}
	for n := range maxLocalBuckets {
		if !spend(n) {
			t.Fatalf("client %d: first request refused", n)
		}
	}
	// Each new client evicts the least recently used bucket, which is full again afterwards.
	for _, c := range []struct {
		client int
		taken  bool
	}{{0, false}, {maxLocalBuckets, true}, {0, false}, {1, true}} {
		if got := spend(c.client); got != c.taken {
			t.Errorf("client %d: allowed %t, want %t", c.client, got, c.taken)
		}
	}
	if n := h.local.fullAt.Len(); n != maxLocalBuckets {
		t.Errorf("%d buckets, want %d", n, maxLocalBuckets)
	}
}
