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

// loadResult is what one call of Do came back with.
type loadResult struct {
	body  string
	state State
	err   error
}

// loadAsync calls Do aside.
func loadAsync(t testing.TB, ctx context.Context, c *Cache, fill func(context.Context) (Loaded, error)) <-chan loadResult {
	answer := make(chan loadResult, 1)
	go func() {
		e, state, err := c.GetOrLoad(ctx, testKey, nil, Loader{TTL: time.Minute, Load: fill})
		a := loadResult{state: state, err: err}
		if err == nil {
			a.body = bodyText(t, e)
		}
		answer <- a
	}()
	return answer
}

// blockingLoader answers slowly: not before it is told to.
type blockingLoader struct {
	t       testing.TB
	calls   atomic.Int32
	started chan struct{} // one for each call
	release chan struct{} // closed when they may answer
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

// stepReached tells when a process has taken a step in Redis so many times.
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

// waitForGoroutines waits until no goroutine of this package's own is left.
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
			t.Fatalf("goroutines are left:\n%s", all)
		}
		runtime.Gosched()
	}
}

// waitingContext is the context of callers who have read already: the first thing they ask of it is
// to wait, in a flight.
type waitingContext struct {
	context.Context
	onWait func()
}

func (w waitingContext) Done() <-chan struct{} {
	w.onWait()
	return w.Context.Done()
}

// loadConcurrently calls Do many times at once, for an entry that was read in vain, and returns
// when all of them wait.
func loadConcurrently(t testing.TB, c *Cache, n int, fill func(context.Context) (Loaded, error)) <-chan loadResult {
	seen := c.read(t.Context(), testKey)
	answers := make(chan loadResult, n)
	var all sync.WaitGroup
	all.Add(n)
	for range n {
		go func() {
			ctx := waitingContext{t.Context(), sync.OnceFunc(all.Done)}
			e, state, err := c.GetOrLoad(ctx, testKey, seen, Loader{TTL: time.Minute, Load: fill})
			a := loadResult{state: state, err: err}
			if err == nil {
				a.body = bodyText(t, e)
			}
			answers <- a
		}()
	}
	all.Wait()
	return answers
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
	for _, answers := range processes {
		for range 250 {
			a := <-answers
			if a.err != nil || a.body != "answer" {
				t.Fatalf("%q, %v", a.body, a.err)
			}
			states[a.state]++
		}
	}
	if n := u.calls.Load(); n != 1 {
		t.Fatalf("%d fills", n)
	}
	if states[Miss] != 250 || states[Hit] != 750 { // those of the leader's process, and those it left an entry for
		t.Fatalf("%v", states)
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
	var answers []<-chan loadResult
	for range 100 {
		answers = append(answers, loadAsync(t, t.Context(), follower.Cache, unexpectedLoad(t)))
	}
	for range 4 {
		<-polls
	}
	close(u.release)
	for _, answer := range append(answers, first) {
		if a := <-answer; a.err != nil || a.body != "answer" {
			t.Fatalf("%q, %v", a.body, a.err)
		}
	}
	if most != 1 {
		t.Fatalf("%d polled at once", most)
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
		t.Fatalf("the one who left: %v", a.err)
	}
	close(u.release)
	if a := <-waiter; a.err != nil || a.body != "answer" {
		t.Fatalf("the one who stayed: %q, %v", a.body, a.err)
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
	second := loadAsync(t, t.Context(), p.Cache, loadBody(t, "either")) // joins, or comes after: never waits for a lease to lapse
	close(finish)
	if a := <-first; !errors.Is(a.err, errLoad) {
		t.Fatalf("the first: %v", a.err)
	}
	if a := <-second; !errors.Is(a.err, errLoad) && a.body != "either" {
		t.Fatalf("the second: %q, %v", a.body, a.err)
	}
	if n := p.rdb.Exists(t.Context(), testKeys.Lock(testKey)).Val(); n != 0 {
		t.Fatal("the lock is still there")
	}
}

func TestGetOrLoad_PanicOrHangInLoadReturnsError(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	a := <-loadAsync(t, t.Context(), p.Cache, func(context.Context) (Loaded, error) { panic("a bad answer") })
	if a.err == nil || !strings.Contains(a.err.Error(), "a bad answer") || !strings.Contains(a.err.Error(), "flight_test.go") {
		t.Errorf("panic: %v", a.err)
	}
	a = <-loadAsync(t, t.Context(), p.Cache, func(context.Context) (Loaded, error) { runtime.Goexit(); return Loaded{}, nil })
	if !errors.Is(a.err, errGoexit) {
		t.Errorf("goexit: %v", a.err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), headroom+gracePeriod)
	defer cancel()
	deaf := make(chan struct{})
	a = <-loadAsync(t, ctx, p.Cache, func(context.Context) (Loaded, error) { <-deaf; return Loaded{}, nil })
	if !errors.Is(a.err, context.DeadlineExceeded) {
		t.Errorf("deaf to its context: %v", a.err)
	}
	expectLoad(t, p.Cache, Loader{Load: loadBody(t, "later")}, "later", Miss) // the key is not stuck with it
	close(deaf)
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
		t.Fatalf("the starter: %v", a.err)
	}
	<-u.started // the other began anew
	close(u.release)
	if a := <-waiter; a.err != nil || a.body != "answer" {
		t.Fatalf("the waiter: %q, %v", a.body, a.err)
	}
	waitForGoroutines(t)
}

func TestGetOrLoad_LoadEndsInTimeToStoreAndWrite(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
	defer cancel()
	mine, _ := ctx.Deadline()
	a := <-loadAsync(t, ctx, p.Cache, func(ctx context.Context) (Loaded, error) {
		its, _ := ctx.Deadline()
		if left := mine.Sub(its); left < headroom {
			t.Errorf("leaves %v", left)
		}
		return newLoaded(t, "answer"), nil
	})
	if a.err != nil {
		t.Fatal(a.err)
	}
}
