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
	server := redistest.NewServer(t)
	rdb := redisclient.Open(redisclient.Config{Addr: server.Addr})
	defer rdb.Close()
	d := newHarness(t, rdb, limits(40, 200, 400)) // bursts of 10, 50, 100; one in 1.5 s, 0.3 s, 0.15 s
	d.request(Read, guest(1))
	server.Stop()
	if n := d.countAllowed(200, Read, guest(1)); n != 10 {
		t.Errorf("%d let through", n)
	}
	s := d.request(Read, guest(1))
	if !s.Refused || s.Policy != "read-cookie" || s.Reset != 1500*time.Millisecond {
		t.Errorf("%+v", s)
	}
	c := guest(1)
	for _, c.Cookie = range []string{"gms_a", "gms_b", "gms_c", "gms_d"} { // the refused ones took nothing of the fingerprint's
		if n := d.countAllowed(20, Read, c); n != 10 {
			t.Errorf("%s: %d let through", c.Cookie, n)
		}
	}
	c.Cookie = "gms_e"
	if n := d.countAllowed(20, Read, c); n != 0 {
		t.Errorf("%d more than the fingerprint has", n)
	}
	d.clock.Add(int64(300 * time.Millisecond))
	if n := d.countAllowed(5, Read, c); n != 1 {
		t.Errorf("after its time: %d", n)
	}
	server.Start()
	for deadline := time.Now().Add(15 * time.Second); rdb.Ping(t.Context()).Err() != nil; {
		if time.Now().After(deadline) {
			t.Fatal("Redis does not come back")
		}
	}
	if d.request(Read, c).Refused || len(server.Client().Keys(t.Context(), "*").Val()) != 3 {
		t.Error("Redis is back and not asked")
	}
}

func TestLimiter_NoRequestFailsWhileRedisRestarts(t *testing.T) {
	server := redistest.NewServer(t)
	rdb := redisclient.Open(redisclient.Config{Addr: server.Addr})
	defer rdb.Close()
	d := newHarness(t, rdb, nil)
	var asked, refused atomic.Int64
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			for i := range 100 { // each client a few times: nobody is near a limit
				s := d.request(Read, guest(n*100+i/4))
				asked.Add(1)
				if s == nil || s.Refused {
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
	if asked.Load() != 2000 || refused.Load() != 0 {
		t.Errorf("%d asked, %d refused", asked.Load(), refused.Load())
	}
}

func TestLocalLimiter_BucketCountIsBounded(t *testing.T) {
	d := newHarness(t, nil, nil)
	for n := range maxLocalBuckets {
		b := &bucket{key: guest(n).Cookie, rate: newRate(4)}
		if d.local.spend([]*bucket{b}); !b.taken {
			t.Fatal("a first request is refused")
		}
	}
	for _, c := range []struct {
		n     int
		taken bool
	}{{0, false}, {maxLocalBuckets, true}, {0, false}, {1, true}} { // the last newcomer pushed out the one unused for longest
		b := &bucket{key: guest(c.n).Cookie, rate: newRate(4)}
		if d.local.spend([]*bucket{b}); b.taken != c.taken {
			t.Errorf("client %d: %v", c.n, b.taken)
		}
	}
	if n := d.local.fullAt.Len(); n != maxLocalBuckets {
		t.Errorf("%d kept", n)
	}
}
