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

// asked is what one call of Do came back with.
type asked struct {
	body  string
	state State
	err   error
}

// ask calls Do aside.
func ask(t testing.TB, ctx context.Context, c *Cache, fill func(context.Context) (Filled, error)) <-chan asked {
	answer := make(chan asked, 1)
	go func() {
		e, state, err := c.Do(ctx, testKey, nil, Recipe{TTL: time.Minute, Fill: fill})
		a := asked{state: state, err: err}
		if err == nil {
			a.body = text(t, e)
		}
		answer <- a
	}()
	return answer
}

// upstream answers slowly: not before it is told to.
type upstream struct {
	t      testing.TB
	calls  atomic.Int32
	began  chan struct{} // one for each call
	finish chan struct{} // closed when they may answer
}

func newUpstream(t testing.TB) *upstream {
	return &upstream{t: t, began: make(chan struct{}, 10_000), finish: make(chan struct{})}
}

func (u *upstream) fill(ctx context.Context) (Filled, error) {
	u.calls.Add(1)
	u.began <- struct{}{}
	select {
	case <-u.finish:
		return filled(u.t, "answer"), nil
	case <-ctx.Done():
		return Filled{}, ctx.Err()
	}
}

// counted tells when a process has taken a step in Redis so many times.
func counted(p *process, name string, times int) <-chan struct{} {
	reached := make(chan struct{})
	var n atomic.Int32
	p.tap.set(nil, func(step string) {
		if step == name && int(n.Add(1)) == times {
			close(reached)
		}
	})
	return reached
}

// settled waits until no goroutine of this package's own is left.
func settled(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	stacks := make([]byte, 1<<20)
	for {
		all := stacks[:runtime.Stack(stacks, true)]
		if !bytes.Contains(all, []byte("cache.(*Cache).fly")) && !bytes.Contains(all, []byte("cache.run.func")) &&
			!bytes.Contains(all, []byte("cache.(*lease)")) {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("goroutines are left:\n%s", all)
		}
		runtime.Gosched()
	}
}

// waiting is the context of callers who have read already: the first thing they ask of it is to wait, in a flight.
type waiting struct {
	context.Context
	ask func()
}

func (w waiting) Done() <-chan struct{} {
	w.ask()
	return w.Context.Done()
}

// crowd calls Do many times at once, for an entry that was read in vain, and returns when all of them wait.
func crowd(t testing.TB, c *Cache, n int, fill func(context.Context) (Filled, error)) <-chan asked {
	seen := c.read(t.Context(), testKey)
	answers := make(chan asked, n)
	var all sync.WaitGroup
	all.Add(n)
	for range n {
		go func() {
			ctx := waiting{t.Context(), sync.OnceFunc(all.Done)}
			e, state, err := c.Do(ctx, testKey, seen, Recipe{TTL: time.Minute, Fill: fill})
			a := asked{state: state, err: err}
			if err == nil {
				a.body = text(t, e)
			}
			answers <- a
		}()
	}
	all.Wait()
	return answers
}

func TestAThousandCallersOfFourProcessesMakeOneFill(t *testing.T) {
	clock, addr := newClock(), redisAddr(t)
	u := newUpstream(t)
	var processes []<-chan asked
	for range 4 {
		p := newProcess(t, addr, clock)
		asking := counted(p, "acquire", 1)
		processes = append(processes, crowd(t, p.Cache, 250, u.fill))
		<-asking
	}
	close(u.finish)
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
	settled(t)
}

func TestAProcessThatFollowsPollsOnce(t *testing.T) {
	clock, addr := newClock(), redisAddr(t)
	leader, follower := newProcess(t, addr, clock), newProcess(t, addr, clock)
	u := newUpstream(t)
	first := ask(t, t.Context(), leader.Cache, u.fill)
	<-u.began

	var mu sync.Mutex
	polling, most, polls := 0, 0, make(chan struct{}, 10_000)
	follower.tap.set(func(step string) error {
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
	var answers []<-chan asked
	for range 100 {
		answers = append(answers, ask(t, t.Context(), follower.Cache, noFill(t)))
	}
	for range 4 {
		<-polls
	}
	close(u.finish)
	for _, answer := range append(answers, first) {
		if a := <-answer; a.err != nil || a.body != "answer" {
			t.Fatalf("%q, %v", a.body, a.err)
		}
	}
	if most != 1 {
		t.Fatalf("%d polled at once", most)
	}
	settled(t)
}

func TestAWaiterWhoLeavesFailsNobody(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	u := newUpstream(t)
	starts, leave := context.WithCancel(t.Context())
	starter := ask(t, starts, p.Cache, u.fill)
	<-u.began
	waiter := ask(t, t.Context(), p.Cache, noFill(t))
	leave()
	if a := <-starter; !errors.Is(a.err, context.Canceled) {
		t.Fatalf("the one who left: %v", a.err)
	}
	close(u.finish)
	if a := <-waiter; a.err != nil || a.body != "answer" {
		t.Fatalf("the one who stayed: %q, %v", a.body, a.err)
	}
	want(t, p.Cache, Recipe{Fill: noFill(t)}, "answer", Hit)
	settled(t)
}

func TestWhenAllLeaveTheAnswerIsStillStored(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	u := newUpstream(t)
	stored := counted(p, "store", 1)
	ctx, leave := context.WithCancel(t.Context())
	only := ask(t, ctx, p.Cache, u.fill)
	<-u.began
	leave()
	<-only
	close(u.finish)
	<-stored
	want(t, p.Cache, Recipe{Fill: noFill(t)}, "answer", Hit)
	settled(t)
}

func TestAnErrorIsSharedAndFreesTheLock(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	began, finish := make(chan struct{}), make(chan struct{})
	first := ask(t, t.Context(), p.Cache, func(context.Context) (Filled, error) {
		close(began)
		<-finish
		return Filled{}, errFill
	})
	<-began
	second := ask(t, t.Context(), p.Cache, answer(t, "either")) // joins, or comes after: never waits for a lease to lapse
	close(finish)
	if a := <-first; !errors.Is(a.err, errFill) {
		t.Fatalf("the first: %v", a.err)
	}
	if a := <-second; !errors.Is(a.err, errFill) && a.body != "either" {
		t.Fatalf("the second: %q, %v", a.body, a.err)
	}
	if n := p.rdb.Exists(t.Context(), testKeys.Lock(testKey)).Val(); n != 0 {
		t.Fatal("the lock is still there")
	}
}

func TestAFillThatPanicsOrNeverReturnsIsAnErrorOfItsCallers(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	a := <-ask(t, t.Context(), p.Cache, func(context.Context) (Filled, error) { panic("a bad answer") })
	if a.err == nil || !strings.Contains(a.err.Error(), "a bad answer") || !strings.Contains(a.err.Error(), "flight_test.go") {
		t.Errorf("panic: %v", a.err)
	}
	a = <-ask(t, t.Context(), p.Cache, func(context.Context) (Filled, error) { runtime.Goexit(); return Filled{}, nil })
	if !errors.Is(a.err, errNoReturn) {
		t.Errorf("goexit: %v", a.err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), headroom+grace)
	defer cancel()
	deaf := make(chan struct{})
	a = <-ask(t, ctx, p.Cache, func(context.Context) (Filled, error) { <-deaf; return Filled{}, nil })
	if !errors.Is(a.err, context.DeadlineExceeded) {
		t.Errorf("deaf to its context: %v", a.err)
	}
	want(t, p.Cache, Recipe{Fill: answer(t, "later")}, "later", Miss) // the key is not stuck with it
	close(deaf)
	settled(t)
}

func TestACallerWithMoreTimeOutlivesAStarterWithLittle(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	u := newUpstream(t)
	short, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer cancel()
	starter := ask(t, short, p.Cache, u.fill)
	<-u.began
	waiter := ask(t, t.Context(), p.Cache, u.fill)
	if a := <-starter; !errors.Is(a.err, context.DeadlineExceeded) {
		t.Fatalf("the starter: %v", a.err)
	}
	<-u.began // the other began anew
	close(u.finish)
	if a := <-waiter; a.err != nil || a.body != "answer" {
		t.Fatalf("the waiter: %q, %v", a.body, a.err)
	}
	settled(t)
}

func TestAFillEndsInTimeToBeStoredAndWritten(t *testing.T) {
	p := newProcess(t, redisAddr(t), newClock())
	ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
	defer cancel()
	mine, _ := ctx.Deadline()
	a := <-ask(t, ctx, p.Cache, func(ctx context.Context) (Filled, error) {
		its, _ := ctx.Deadline()
		if left := mine.Sub(its); left < headroom {
			t.Errorf("leaves %v", left)
		}
		return filled(t, "answer"), nil
	})
	if a.err != nil {
		t.Fatal(a.err)
	}
}
