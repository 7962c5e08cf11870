package cache

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

func TestRetryRedis_DoesNotRetryRefusals(t *testing.T) {
	for _, refused := range []string{"acquire", "store"} {
		t.Run(refused, func(t *testing.T) {
			t.Parallel()
			server := redistest.NewServer(t)
			p, healthy := newProcess(t, server.Addr, newClock()), server.Client()
			tries := 0
			p.interceptor.set(func(step string) error {
				if step != refused {
					return nil
				}
				tries++
				// from now on Redis refuses writes
				return healthy.ConfigSet(t.Context(), "maxmemory", "1").Err()
			}, nil)
			expectLoad(t, p.Cache, Loader{Load: loadBody(t, "answer")}, "answer", Miss)
			if tries > 2 { // by digest, and by source after NOSCRIPT
				t.Errorf("got %d tries, want at most 2", tries)
			}
		})
	}
}

// serverError is an error reply of the server.
type serverError string

func (r serverError) Error() string { return string(r) }
func (serverError) RedisError()     {}

func TestRetryRedis_RetriesOnlyTransientErrors(t *testing.T) {
	for err, tries := range map[error]int{
		serverError("OOM command not allowed"): 1, serverError("READONLY You can't write"): 1, serverError("WRONGTYPE Operation"): 1,
		serverError("LOADING Redis is loading"): 2, serverError("TRYAGAIN Multiple keys"): 2, serverError("CLUSTERDOWN Hash slot"): 2,
		errCut: 2,
	} {
		t.Run(err.Error(), func(t *testing.T) {
			n := 0
			got := retryRedis(t.Context(), func(context.Context) error {
				if n++; n == 1 {
					return fmt.Errorf("lua: acquire: %w", err)
				}
				return nil
			})
			if n != tries || (tries == 1) != errors.Is(got, err) {
				t.Errorf("got %d tries, %v, want %d", n, got, tries)
			}
		})
	}
}

func TestGetOrLoad_OverwritesKeysOfWrongType(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	p.rdb.RPush(t.Context(), testKey, "a list")
	p.rdb.RPush(t.Context(), testKeys.Lock(testKey), "a list")
	expectLoad(t, p.Cache, Loader{Load: loadBody(t, "answer")}, "answer", Miss)
	expectLoad(t, p.Cache, Loader{Load: unexpectedLoad(t)}, "answer", Hit)
}

func TestLease_LockWithoutTTLExpires(t *testing.T) {
	addr, clock := redisAddr(t), newClock()
	p, other := newProcess(t, addr, clock), newProcess(t, addr, clock)
	p.rdb.Set(t.Context(), testKeys.Lock(testKey), "other", 0)
	acquired := stepReached(p, "acquire", 1)
	go func() {
		<-acquired // the first attempt has set the TTL
		expireLock(t, other)
	}()
	expectLoad(t, p.Cache, Loader{Load: loadBody(t, "answer")}, "answer", Miss)
}
