package cache

import (
	"testing"
	"time"
)

// expireLock checks that the lock of testKey expires within leaseTTL without further action, and
// then expires the lock, so that the test need not wait.
func expireLock(t *testing.T, p *process) {
	t.Helper()
	lock := testKeys.Lock(testKey)
	if ttl := p.rdb.PTTL(t.Context(), lock).Val(); ttl <= 0 || ttl > leaseTTL {
		t.Errorf("the lock lives %v, want at most %v", ttl, leaseTTL)
	}
	p.rdb.PExpire(t.Context(), lock, time.Millisecond)
}

func TestLease_OneFollowerReplacesDeadLeader(t *testing.T) {
	clock, addr := newClock(), redisAddr(t)
	leader := newProcess(t, addr, clock)
	dying := newBlockingLoader(t)
	last := loadAsync(t, t.Context(), leader.Cache, dying.load)
	<-dying.started

	u := newBlockingLoader(t)
	var results []<-chan loadResult
	for range 3 {
		follower := newProcess(t, addr, clock)
		polled := stepReached(follower, "acquire", 2)
		for range 20 {
			results = append(results, loadAsync(t, t.Context(), follower.Cache, u.load))
		}
		<-polled
	}
	if n := u.calls.Load(); n != 0 {
		t.Fatalf("got %d loads by followers of a live leader, want 0", n)
	}
	// the leader can no longer extend the lock
	leader.interceptor.set(func(string) error { return errCut }, nil)
	expireLock(t, newProcess(t, addr, clock))
	<-u.started // a follower has taken over
	close(u.release)
	for _, result := range results {
		if a := <-result; a.err != nil || a.body != "answer" {
			t.Fatalf("got %q, %v, want answer", a.body, a.err)
		}
	}
	if n := u.calls.Load(); n != 1 {
		t.Fatalf("got %d loads after the takeover, want 1", n)
	}
	close(dying.release)
	if a := <-last; a.err != nil || a.state != Miss { // the old leader still answers its own callers
		t.Fatalf("old leader: got %s, %v, want MISS", a.state, a.err)
	}
	waitForGoroutines(t)
}

func TestLease_LostLeaseStoresNothing(t *testing.T) {
	clock, addr := newClock(), redisAddr(t)
	slow, quick := newProcess(t, addr, clock), newProcess(t, addr, clock)
	u := newBlockingLoader(t)
	old := loadAsync(t, t.Context(), slow.Cache, u.load)
	<-u.started
	slow.rdb.Del(t.Context(), testKeys.Lock(testKey)) // as if the lock had expired
	expectLoad(t, quick.Cache, Loader{Load: loadBody(t, "newer")}, "newer", Miss)
	close(u.release)
	if a := <-old; a.err != nil || a.body != "answer" {
		t.Fatalf("caller of the slow process: got %q, %v, want answer", a.body, a.err)
	}
	expectLoad(t, quick.Cache, Loader{Load: unexpectedLoad(t)}, "newer", Hit)
}

func TestLease_LeaderExtendsWhileLoading(t *testing.T) {
	clock, addr := newClock(), redisAddr(t)
	leader, follower := newProcess(t, addr, clock), newProcess(t, addr, clock)
	u := newBlockingLoader(t)
	extended := stepReached(leader, "extend", 3)
	first := loadAsync(t, t.Context(), leader.Cache, u.load)
	<-u.started
	// expires before the third extension, unless extended
	leader.rdb.PExpire(t.Context(), testKeys.Lock(testKey), leaseTTL/2)
	second := loadAsync(t, t.Context(), follower.Cache, unexpectedLoad(t))
	<-extended
	close(u.release)
	for _, result := range []<-chan loadResult{first, second} {
		if a := <-result; a.err != nil || a.body != "answer" {
			t.Fatalf("got %q, %v, want answer", a.body, a.err)
		}
	}
}
