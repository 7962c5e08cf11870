package redisclient

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// fakeRedis simulates Redis: a round trip starts and stays in flight until the test ends it. Every
// GET returns its key.
type fakeRedis struct {
	process    redis.ProcessPipelineHook
	finish     chan error // ends the round trips in order of their start
	mu         sync.Mutex
	roundTrips []roundTrip
}

// roundTrip is a recorded round trip.
type roundTrip struct {
	ctx  context.Context
	keys []string
}

// newFakeRedis returns a fakeRedis for a client with the given I/O timeout.
func newFakeRedis(timeout time.Duration) *fakeRedis {
	w := &fakeRedis{finish: make(chan error)}
	w.process = pipelineBatcher{ioTimeout: timeout}.ProcessPipelineHook(func(ctx context.Context, cmds []redis.Cmder) error {
		t := roundTrip{ctx: ctx}
		for _, cmd := range cmds {
			t.keys = append(t.keys, fmt.Sprint(cmd.Args()[len(cmd.Args())-1]))
		}
		w.mu.Lock()
		w.roundTrips = append(w.roundTrips, t)
		w.mu.Unlock()
		err := <-w.finish
		for i, cmd := range cmds {
			switch {
			case err != nil:
				cmd.SetErr(err)
			case t.keys[i] == "wrong":
				cmd.SetErr(errWrongType)
			default:
				cmd.(*redis.StringCmd).SetVal(t.keys[i])
			}
		}
		return cmds[0].Err()
	})
	return w
}

var errWrongType = errors.New("WRONGTYPE")

// get sends a pipeline of GETs and returns a channel with the error of the pipeline.
func (w *fakeRedis) get(ctx context.Context, keys ...string) <-chan error {
	result := make(chan error, 1)
	go func() {
		var cmds []redis.Cmder
		for _, key := range keys {
			cmds = append(cmds, redis.NewStringCmd(ctx, "get", key))
		}
		err := w.process(ctx, cmds)
		for i, cmd := range cmds {
			if got := cmd.(*redis.StringCmd).Val(); cmd.Err() == nil && got != keys[i] {
				err = fmt.Errorf("GET %s: got %s", keys[i], got)
			}
		}
		result <- err
	}()
	synctest.Wait()
	return result
}

// newBusyRedis returns a fakeRedis with maxInFlight round trips in flight, so that further
// pipelines wait.
func newBusyRedis(t *testing.T, timeout time.Duration) *fakeRedis {
	w := newFakeRedis(timeout)
	for range maxInFlight {
		w.get(t.Context(), "first")
	}
	return w
}

// newRoundTrips returns the round trips after those of newBusyRedis.
func (w *fakeRedis) newRoundTrips() []roundTrip {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.roundTrips[maxInFlight:]
}

func TestPipelineBatcher_MergesConcurrentPipelines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newBusyRedis(t, ioTimeout)
		one, two, three := w.get(t.Context(), "a", "b"), w.get(t.Context(), "wrong", "c"), w.get(t.Context(), "d")
		if started := w.newRoundTrips(); len(started) != 0 {
			t.Fatalf("with %d round trips in flight: got %v, want none", maxInFlight, started)
		}
		w.finish <- nil
		if started := w.newRoundTrips(); len(started) != 1 || fmt.Sprint(started[0].keys) != "[a b wrong c d]" {
			t.Fatalf("after the end of a round trip: got %v, want one batch of 5 keys", started)
		}
		close(w.finish)
		for name, result := range map[string]<-chan error{"first": one, "last": three} {
			if err := <-result; err != nil {
				t.Errorf("%s pipeline: %v", name, err)
			}
		}
		if err := <-two; !errors.Is(err, errWrongType) {
			t.Errorf("pipeline with a refused command: got %v, want %v", err, errWrongType)
		}
	})
}

func TestPipelineBatcher_LimitsBatchSize(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newBusyRedis(t, ioTimeout)
		for range maxBatch + 1 {
			w.get(t.Context(), "k")
		}
		w.finish <- nil
		if started := w.newRoundTrips(); len(started) != 1 || len(started[0].keys) != maxBatch {
			t.Fatalf("got %v, want one full batch", started)
		}
		w.finish <- nil
		if started := w.newRoundTrips(); len(started) != 2 || len(started[1].keys) != 1 {
			t.Fatalf("got round trips %v", started)
		}
		close(w.finish)
	})
}

func TestPipelineBatcher_SendsSeparatelyAfterTenMilliseconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newBusyRedis(t, ioTimeout)
		one, two := w.get(t.Context(), "a"), w.get(t.Context(), "b")
		<-time.After(maxWait)
		if started := w.newRoundTrips(); len(started) != 1 || len(started[0].keys) != 2 {
			t.Fatalf("after %v: got %v, want one extra batch of 2 keys", maxWait, started)
		}
		three := w.get(t.Context(), "c")
		w.finish <- nil // of the three in flight
		if started := w.newRoundTrips(); len(started) != 1 {
			t.Fatalf("with two round trips in flight: got %v, want 1", started)
		}
		w.finish <- nil
		if started := w.newRoundTrips(); len(started) != 2 {
			t.Fatalf("with a round trip in flight: got %v, want 2", started)
		}
		close(w.finish)
		if err := errors.Join(<-one, <-two, <-three); err != nil {
			t.Fatal(err)
		}
	})
}

func TestPipelineBatcher_PreconnectsWhenFirstPipelineWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		end := make(chan error)
		process := pipelineBatcher{ioTimeout: ioTimeout, preconnect: func() { calls++ }}.ProcessPipelineHook(func(context.Context, []redis.Cmder) error { return <-end })
		for n, want := range []int{0, 0, 1, 1} {
			go process(t.Context(), []redis.Cmder{redis.NewStringCmd(t.Context(), "get", "k")})
			synctest.Wait()
			if calls != want {
				t.Errorf("after %d earlier pipelines: got %d calls of preconnect, want %d", n, calls, want)
			}
		}
		close(end)
	})
}

func TestPipelineBatcher_CanceledWaiterLeavesBatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newBusyRedis(t, ioTimeout)
		ctx, cancel := context.WithCancel(t.Context())
		gone := w.get(ctx, "gone")
		stays := w.get(t.Context(), "stays")
		cancel()
		if started := w.newRoundTrips(); len(started) != 1 || started[0].ctx.Err() == nil {
			t.Fatalf("got %v, want one round trip with an ended context", started)
		}
		close(w.finish)
		<-gone
		if err := <-stays; err != nil {
			t.Fatal(err)
		}
	})
}

func TestPipelineBatcher_EndsAtEarliestDeadlineNotOnCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newBusyRedis(t, ioTimeout)
		first := time.Now().Add(100 * time.Millisecond)
		leader, cancelLeader := context.WithTimeout(t.Context(), 110*time.Millisecond)
		hurried, cancel := context.WithDeadline(t.Context(), first)
		defer cancel()
		w.get(leader, "a")
		w.get(hurried, "b")
		w.get(t.Context(), "c")
		w.finish <- nil
		started := w.newRoundTrips()
		cancelLeader()
		if len(started) != 1 {
			t.Fatalf("got round trips %v", started)
		}
		if at, limited := started[0].ctx.Deadline(); !limited || !at.Equal(first) || started[0].ctx.Err() != nil {
			t.Errorf("got deadline %v, error %v, want %v", at, started[0].ctx.Err(), first)
		}
		close(w.finish)
	})
}

func TestPipelineBatcher_SeparatesDistantDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newBusyRedis(t, ioTimeout)
		within := func(d time.Duration, key string) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			t.Cleanup(cancel)
			w.get(ctx, key)
		}
		within(40*time.Millisecond, "40 ms")
		within(100*time.Millisecond, "100 ms")
		within(100*time.Millisecond, "also 100 ms")
		w.get(t.Context(), "no deadline")
		w.finish <- nil
		w.finish <- nil
		started := w.newRoundTrips()
		if len(started) != 2 || len(started[0].keys)+len(started[1].keys) != 4 {
			t.Fatalf("got round trips %v", started)
		}
		for _, trip := range started {
			if at, limited := trip.ctx.Deadline(); len(trip.keys) > 1 && limited && time.Until(at) < 100*time.Millisecond {
				t.Errorf("batch %v: got %v until the deadline, want at least 100ms", trip.keys, time.Until(at))
			}
		}
		close(w.finish)
	})
}

func TestPipelineBatcher_LongTimeoutIsNotShortened(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newBusyRedis(t, longTimeout)
		for _, d := range []time.Duration{200 * time.Millisecond, 800 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			w.get(ctx, d.String())
		}
		w.finish <- nil
		w.finish <- nil
		if started := w.newRoundTrips(); len(started) != 2 {
			t.Errorf("got round trips %v, want 2", started)
		}
		close(w.finish)
	})
}

func TestPipelineBatcher_BypassesTransactionsAndLargePipelines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newBusyRedis(t, ioTimeout)
		hurried, cancel := context.WithTimeout(t.Context(), minTimeout-time.Millisecond)
		defer cancel()
		w.get(hurried, "hurried")
		if started := w.newRoundTrips(); len(started) != 1 {
			t.Errorf("pipeline with less than 25 ms left: got %v, want 1 round trip", started)
		}
		go w.process(t.Context(), []redis.Cmder{redis.NewStatusCmd(t.Context(), "multi"), redis.NewSliceCmd(t.Context(), "exec")})
		if started := w.newRoundTrips(); len(started) != 2 {
			t.Errorf("transaction: got %v, want 2 round trips", started)
		}
		w.get(t.Context(), make([]string, maxPipelineSize+1)...)
		if started := w.newRoundTrips(); len(started) != 3 {
			t.Errorf("large pipeline: got %v, want 3 round trips", started)
		}
		for range maxInFlight + 3 {
			w.finish <- errWrongType
		}
	})
}

func TestPipelineBatcher_PanicReleasesOtherWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		started, end := make(chan int), make(chan bool)
		process := pipelineBatcher{ioTimeout: ioTimeout}.ProcessPipelineHook(func(_ context.Context, cmds []redis.Cmder) error {
			started <- len(cmds)
			if <-end {
				panic("a bug")
			}
			return nil
		})
		outcomes := make(chan any, 2*maxInFlight+2)
		send := func() {
			go func() {
				defer func() {
					if p := recover(); p != nil {
						outcomes <- p
					}
				}()
				outcomes <- process(t.Context(), []redis.Cmder{redis.NewStringCmd(t.Context(), "get", "k")})
			}()
			synctest.Wait()
		}
		for range maxInFlight {
			send()
			<-started
		}
		send()
		send()
		for range maxInFlight {
			end <- true
			synctest.Wait()
		}
		if n := <-started; n != 2 {
			t.Fatalf("got a batch of %d commands, want 2", n)
		}
		end <- true
		for range maxInFlight + 2 {
			if r := <-outcomes; r == nil {
				t.Error("a pipeline without a reply has no error")
			}
		}
		for range maxInFlight {
			send()
			<-started
		}
		close(end)
		for range maxInFlight {
			if r := <-outcomes; r != nil {
				t.Errorf("after the panics: got error %v", r)
			}
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("a pipeline waited %v, want 0", waited)
		}
	})
}
