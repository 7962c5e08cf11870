package cache

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// loadResult is the result of a call of GetOrLoad.
type loadResult struct {
	body  string
	state State
	err   error
}

// loadAsync calls GetOrLoad on a new goroutine.
func loadAsync(t testing.TB, ctx context.Context, c *Cache, load func(context.Context) (Loaded, error)) <-chan loadResult {
	result := make(chan loadResult, 1)
	go func() {
		e, state, err := c.GetOrLoad(ctx, testKey, nil, Loader{TTL: time.Minute, Load: load})
		a := loadResult{state: state, err: err}
		if err == nil {
			a.body = bodyText(t, e)
		}
		result <- a
	}()
	return result
}

// blockingLoader is a loader that blocks until release is closed.
type blockingLoader struct {
	t       testing.TB
	calls   atomic.Int32
	started chan struct{} // receives a value per call
	release chan struct{} // closed to let all calls return
}

func newBlockingLoader(t testing.TB) *blockingLoader {
	return &blockingLoader{t: t, started: make(chan struct{}, 10_000), release: make(chan struct{})}
}

func (u *blockingLoader) load(ctx context.Context) (Loaded, error) {
	u.calls.Add(1)
	u.started <- struct{}{}
	select {
	case <-u.release:
		return newLoaded(u.t, "answer"), nil
	case <-ctx.Done():
		return Loaded{}, ctx.Err()
	}
}

// stepReached returns a channel that is closed after p has taken a step in Redis the given number
// of times.
func stepReached(p *process, name string, times int) <-chan struct{} {
	reached := make(chan struct{})
	var n atomic.Int32
	p.interceptor.set(nil, func(step string) {
		if step == name && int(n.Add(1)) == times {
			close(reached)
		}
	})
	return reached
}

// waitForGoroutines waits up to 10 s until all goroutines of this package have ended.
func waitForGoroutines(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	stacks := make([]byte, 1<<20)
	for {
		all := stacks[:runtime.Stack(stacks, true)]
		if !bytes.Contains(all, []byte("cache.(*Cache).runFlight")) && !bytes.Contains(all, []byte("cache.runWithLease.func")) &&
			!bytes.Contains(all, []byte("cache.(*lease)")) {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("goroutines of the cache are still running:\n%s", all)
		}
		runtime.Gosched()
	}
}

// waitingContext calls onWait on the first call of Done. A caller with a prefetched miss first
// calls Done when it waits for a flight.
type waitingContext struct {
	context.Context
	onWait func()
}

func (w waitingContext) Done() <-chan struct{} {
	w.onWait()
	return w.Context.Done()
}

// loadConcurrently makes n concurrent calls of GetOrLoad with a prefetched miss, and returns when
// all callers wait.
func loadConcurrently(t testing.TB, c *Cache, n int, load func(context.Context) (Loaded, error)) <-chan loadResult {
	prefetched := c.read(t.Context(), testKey)
	results := make(chan loadResult, n)
	var all sync.WaitGroup
	all.Add(n)
	for range n {
		go func() {
			ctx := waitingContext{t.Context(), sync.OnceFunc(all.Done)}
			e, state, err := c.GetOrLoad(ctx, testKey, prefetched, Loader{TTL: time.Minute, Load: load})
			a := loadResult{state: state, err: err}
			if err == nil {
				a.body = bodyText(t, e)
			}
			results <- a
		}()
	}
	all.Wait()
	return results
}

func TestGetOrLoad_ThousandCallersShareOneLoad(t *testing.T) {
	clock, addr := newClock(), redisAddr(t)
	u := newBlockingLoader(t)
	var processes []<-chan loadResult
	for range 4 {
		p := newProcess(t, addr, clock)
		asking := stepReached(p, "acquire", 1)
		processes = append(processes, loadConcurrently(t, p.Cache, 250, u.load))
		<-asking
	}
	close(u.release)
	states := map[State]int{}
	for _, results := range processes {
		for range 250 {
			a := <-results
			if a.err != nil || a.body != "answer" {
				t.Fatalf("got %q, %v, want answer", a.body, a.err)
			}
			states[a.state]++
		}
	}
	if n := u.calls.Load(); n != 1 {
		t.Fatalf("got %d loads, want 1", n)
	}
	if states[Miss] != 250 || states[Hit] != 750 { // the leader's process, and the other three processes
		t.Fatalf("got states %v, want 250 MISS and 750 HIT", states)
	}
	waitForGoroutines(t)
}

func TestGetOrLoad_FollowerProcessPollsOnce(t *testing.T) {
	clock, addr := newClock(), redisAddr(t)
	leader, follower := newProcess(t, addr, clock), newProcess(t, addr, clock)
	u := newBlockingLoader(t)
	first := loadAsync(t, t.Context(), leader.Cache, u.load)
	<-u.started

	var mu sync.Mutex
	polling, most, polls := 0, 0, make(chan struct{}, 10_000)
	follower.interceptor.set(func(step string) error {
		if step == "acquire" {
			mu.Lock()
			polling++
			most = max(most, polling)
			mu.Unlock()
			polls <- struct{}{}
		}
		return nil
	}, func(step string) {
		if step == "acquire" {
			mu.Lock()
			polling--
			mu.Unlock()
		}
	})
	var results []<-chan loadResult
	for range 100 {
		results = append(results, loadAsync(t, t.Context(), follower.Cache, unexpectedLoad(t)))
	}
	for range 4 {
		<-polls
	}
	close(u.release)
	for _, result := range append(results, first) {
		if a := <-result; a.err != nil || a.body != "answer" {
			t.Fatalf("got %q, %v, want answer", a.body, a.err)
		}
	}
	if most != 1 {
		t.Fatalf("got %d concurrent polls, want 1", most)
	}
	waitForGoroutines(t)
}

func TestGetOrLoad_CanceledWaiterFailsNoOther(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	u := newBlockingLoader(t)
	starts, leave := context.WithCancel(t.Context())
	starter := loadAsync(t, starts, p.Cache, u.load)
	<-u.started
	waiter := loadAsync(t, t.Context(), p.Cache, unexpectedLoad(t))
	leave()
	if a := <-starter; !errors.Is(a.err, context.Canceled) {
		t.Fatalf("cancelled caller: got error %v, want context.Canceled", a.err)
	}
	close(u.release)
	if a := <-waiter; a.err != nil || a.body != "answer" {
		t.Fatalf("other caller: got %q, %v", a.body, a.err)
	}
	expectLoad(t, p.Cache, Loader{Load: unexpectedLoad(t)}, "answer", Hit)
	waitForGoroutines(t)
}

func TestGetOrLoad_StoresEntryAfterAllCallersCancel(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	u := newBlockingLoader(t)
	stored := stepReached(p, "store", 1)
	ctx, leave := context.WithCancel(t.Context())
	only := loadAsync(t, ctx, p.Cache, u.load)
	<-u.started
	leave()
	<-only
	close(u.release)
	<-stored
	expectLoad(t, p.Cache, Loader{Load: unexpectedLoad(t)}, "answer", Hit)
	waitForGoroutines(t)
}

func TestGetOrLoad_SharesErrorAndReleasesLock(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	began, finish := make(chan struct{}), make(chan struct{})
	first := loadAsync(t, t.Context(), p.Cache, func(context.Context) (Loaded, error) {
		close(began)
		<-finish
		return Loaded{}, errLoad
	})
	<-began
	// joins or comes later; never waits for the lock to expire
	second := loadAsync(t, t.Context(), p.Cache, loadBody(t, "either"))
	close(finish)
	if a := <-first; !errors.Is(a.err, errLoad) {
		t.Fatalf("first caller: got error %v, want %v", a.err, errLoad)
	}
	if a := <-second; !errors.Is(a.err, errLoad) && a.body != "either" {
		t.Fatalf("second caller: got %q, %v", a.body, a.err)
	}
	if n := p.rdb.Exists(t.Context(), testKeys.Lock(testKey)).Val(); n != 0 {
		t.Fatal("the lock still exists")
	}
}

func TestGetOrLoad_PanicOrHangInLoadReturnsError(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	a := <-loadAsync(t, t.Context(), p.Cache, func(context.Context) (Loaded, error) { panic("a bad response") })
	if a.err == nil || !strings.Contains(a.err.Error(), "a bad response") || !strings.Contains(a.err.Error(), "flight_test.go") {
		t.Errorf("after a panic: got error %v, want the panic with a stack", a.err)
	}
	a = <-loadAsync(t, t.Context(), p.Cache, func(context.Context) (Loaded, error) { runtime.Goexit(); return Loaded{}, nil })
	if !errors.Is(a.err, errGoexit) {
		t.Errorf("after Goexit: got error %v, want %v", a.err, errGoexit)
	}
	ctx, cancel := context.WithTimeout(t.Context(), headroom+gracePeriod)
	defer cancel()
	hung := make(chan struct{})
	a = <-loadAsync(t, ctx, p.Cache, func(context.Context) (Loaded, error) { <-hung; return Loaded{}, nil })
	if !errors.Is(a.err, context.DeadlineExceeded) {
		t.Errorf("load without regard to its context: got error %v, want a deadline", a.err)
	}
	// the hung load does not block the key
	expectLoad(t, p.Cache, Loader{Load: loadBody(t, "later")}, "later", Miss)
	close(hung)
	waitForGoroutines(t)
}

func TestGetOrLoad_LongerDeadlineRetriesShortFlight(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	u := newBlockingLoader(t)
	short, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer cancel()
	starter := loadAsync(t, short, p.Cache, u.load)
	<-u.started
	waiter := loadAsync(t, t.Context(), p.Cache, u.load)
	if a := <-starter; !errors.Is(a.err, context.DeadlineExceeded) {
		t.Fatalf("starter: got error %v, want a deadline", a.err)
	}
	<-u.started // the second flight
	close(u.release)
	if a := <-waiter; a.err != nil || a.body != "answer" {
		t.Fatalf("waiter: got %q, %v", a.body, a.err)
	}
	waitForGoroutines(t)
}

func TestGetOrLoad_LoadEndsInTimeToStoreAndWrite(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
	defer cancel()
	callerDeadline, _ := ctx.Deadline()
	a := <-loadAsync(t, ctx, p.Cache, func(ctx context.Context) (Loaded, error) {
		loadDeadline, _ := ctx.Deadline()
		if left := callerDeadline.Sub(loadDeadline); left < headroom {
			t.Errorf("got %v between the deadlines of load and caller, want at least %v", left, headroom)
		}
		return newLoaded(t, "answer"), nil
	})
	if a.err != nil {
		t.Fatal(a.err)
	}
}
