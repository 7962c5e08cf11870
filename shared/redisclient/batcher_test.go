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

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

// fakeRedis stands for Redis: round trips begin and stay under way until the test ends them. Every
// GET is answered with its key.
type fakeRedis struct {
	process    redis.ProcessPipelineHook
	finish     chan error // of the round trip that began first, then of the next
	mu         sync.Mutex
	roundTrips []roundTrip
}

// roundTrip is what came in one round trip.
type roundTrip struct {
	ctx  context.Context
	keys []string
}

// newFakeRedis is the wire of a client with so much patience.
func newFakeRedis(patience time.Duration) *fakeRedis {
	w := &fakeRedis{finish: make(chan error)}
	w.process = pipelineBatcher{ioTimeout: patience}.ProcessPipelineHook(func(ctx context.Context, cmds []redis.Cmder) error {
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

// get asks for keys in a pipeline of their own; what becomes of it can be received.
func (w *fakeRedis) get(ctx context.Context, keys ...string) <-chan error {
	answered := make(chan error, 1)
	go func() {
		var cmds []redis.Cmder
		for _, key := range keys {
			cmds = append(cmds, redis.NewStringCmd(ctx, "get", key))
		}
		err := w.process(ctx, cmds)
		for i, cmd := range cmds {
			if got := cmd.(*redis.StringCmd).Val(); cmd.Err() == nil && got != keys[i] {
				err = fmt.Errorf("asked for %s and got %s", keys[i], got)
			}
		}
		answered <- err
	}()
	synctest.Wait()
	return answered
}

// newBusyRedis is a wire on which as many round trips are under way as are begun before others
// wait.
func newBusyRedis(t *testing.T, patience time.Duration) *fakeRedis {
	w := newFakeRedis(patience)
	for range maxInFlight {
		w.get(t.Context(), "first")
	}
	return w
}

// newRoundTrips are the round trips since those of busy.
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
		if begun := w.newRoundTrips(); len(begun) != 0 {
			t.Fatalf("began beside %d others: %v", maxInFlight, begun)
		}
		w.finish <- nil
		if begun := w.newRoundTrips(); len(begun) != 1 || fmt.Sprint(begun[0].keys) != "[a b wrong c d]" {
			t.Fatalf("when one had ended: %v", begun)
		}
		close(w.finish)
		for who, answered := range map[string]<-chan error{"the first": one, "the last": three} {
			if err := <-answered; err != nil {
				t.Errorf("%s: %v", who, err)
			}
		}
		if err := <-two; !errors.Is(err, errWrongType) {
			t.Errorf("whose command was refused: %v", err)
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
		if begun := w.newRoundTrips(); len(begun) != 1 || len(begun[0].keys) != maxBatch {
			t.Fatalf("%v", begun)
		}
		w.finish <- nil
		if begun := w.newRoundTrips(); len(begun) != 2 || len(begun[1].keys) != 1 {
			t.Fatalf("%v", begun)
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
		if begun := w.newRoundTrips(); len(begun) != 1 || len(begun[0].keys) != 2 {
			t.Fatalf("beside what hangs: %v", begun)
		}
		three := w.get(t.Context(), "c")
		w.finish <- nil // of the three that are under way
		if begun := w.newRoundTrips(); len(begun) != 1 {
			t.Fatalf("beside two others: %v", begun)
		}
		w.finish <- nil
		if begun := w.newRoundTrips(); len(begun) != 2 {
			t.Fatalf("beside one other: %v", begun)
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
		asked := 0
		end := make(chan error)
		process := pipelineBatcher{ioTimeout: ioTimeout, preconnect: func() { asked++ }}.ProcessPipelineHook(func(context.Context, []redis.Cmder) error { return <-end })
		for n, want := range []int{0, 0, 1, 1} {
			go process(t.Context(), []redis.Cmder{redis.NewStringCmd(t.Context(), "get", "k")})
			synctest.Wait()
			if asked != want {
				t.Errorf("with %d before: %d times", n, asked)
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
		if begun := w.newRoundTrips(); len(begun) != 1 || begun[0].ctx.Err() == nil {
			t.Fatalf("its commands are told by a context that has ended: %v", begun)
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
		leads, hangUp := context.WithTimeout(t.Context(), 110*time.Millisecond)
		hurried, cancel := context.WithDeadline(t.Context(), first)
		defer cancel()
		w.get(leads, "a")
		w.get(hurried, "b")
		w.get(t.Context(), "c")
		w.finish <- nil
		begun := w.newRoundTrips()
		hangUp()
		if len(begun) != 1 {
			t.Fatalf("%v", begun)
		}
		if at, limited := begun[0].ctx.Deadline(); !limited || !at.Equal(first) || begun[0].ctx.Err() != nil {
			t.Errorf("ends at %v, want %v; %v", at, first, begun[0].ctx.Err())
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
		within(40*time.Millisecond, "what is left of a step")
		within(100*time.Millisecond, "a step")
		within(100*time.Millisecond, "another")
		w.get(t.Context(), "without end")
		w.finish <- nil
		w.finish <- nil
		begun := w.newRoundTrips()
		if len(begun) != 2 || len(begun[0].keys)+len(begun[1].keys) != 4 {
			t.Fatalf("%v", begun)
		}
		for _, trip := range begun {
			if at, limited := trip.ctx.Deadline(); len(trip.keys) > 1 && limited && time.Until(at) < 100*time.Millisecond {
				t.Errorf("%v have %v", trip.keys, time.Until(at))
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
		if begun := w.newRoundTrips(); len(begun) != 2 {
			t.Errorf("%v", begun)
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
		if begun := w.newRoundTrips(); len(begun) != 1 {
			t.Errorf("with less than 25 ms: %v", begun)
		}
		go w.process(t.Context(), []redis.Cmder{redis.NewStatusCmd(t.Context(), "multi"), redis.NewSliceCmd(t.Context(), "exec")})
		if begun := w.newRoundTrips(); len(begun) != 2 {
			t.Errorf("a transaction: %v", begun)
		}
		w.get(t.Context(), make([]string, maxPipelineSize+1)...)
		if begun := w.newRoundTrips(); len(begun) != 3 {
			t.Errorf("a large one: %v", begun)
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
		begun, end := make(chan int), make(chan bool)
		process := pipelineBatcher{ioTimeout: ioTimeout}.ProcessPipelineHook(func(_ context.Context, cmds []redis.Cmder) error {
			begun <- len(cmds)
			if <-end {
				panic("a bug")
			}
			return nil
		})
		told := make(chan any, 2*maxInFlight+2)
		ask := func() {
			go func() {
				defer func() {
					if p := recover(); p != nil {
						told <- p
					}
				}()
				told <- process(t.Context(), []redis.Cmder{redis.NewStringCmd(t.Context(), "get", "k")})
			}()
			synctest.Wait()
		}
		for range maxInFlight {
			ask()
			<-begun
		}
		ask()
		ask()
		for range maxInFlight {
			end <- true
			synctest.Wait()
		}
		if n := <-begun; n != 2 {
			t.Fatalf("those who waited came as %d", n)
		}
		end <- true
		for range maxInFlight + 2 {
			if r := <-told; r == nil {
				t.Error("one whose command was not answered was told that all is well")
			}
		}
		for range maxInFlight {
			ask()
			<-begun
		}
		close(end)
		for range maxInFlight {
			if r := <-told; r != nil {
				t.Error(r)
			}
		}
		if waited := time.Since(start); waited != 0 {
			t.Errorf("somebody had to wait %v to go beside", waited)
		}
	})
}

func TestPipelineBatcher_ReturnsEachCallersReplies(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t)
	c := Open(Config{Addr: server.Addr})
	defer c.Close()
	trips := redistest.Count(c)
	const callers, times = 64, 50
	var all sync.WaitGroup
	for caller := range callers {
		all.Go(func() {
			key := fmt.Sprint("k", caller)
			for n := range times {
				pipe := c.Pipeline()
				set := pipe.Set(t.Context(), key, fmt.Sprint(caller, " ", n), 0)
				refused := pipe.LPush(t.Context(), key, "x")
				got := pipe.Get(t.Context(), key)
				pipe.Exec(t.Context())
				if set.Err() != nil || refused.Err() == nil || got.Val() != fmt.Sprint(caller, " ", n) {
					t.Errorf("caller %d: %v, %v, %q", caller, set.Err(), refused.Err(), got.Val())
				}
			}
		})
	}
	all.Wait()
	if n := trips.TakeCount(); n >= callers*times {
		t.Errorf("%d pipelines took %d round trips", callers*times, n)
	}
}

func TestPipelineBatcher_HungServerFailsCallersInTime(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t)
	c := Open(Config{Addr: server.Addr})
	defer c.Close()
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	server.Hang()
	var all sync.WaitGroup
	for range 32 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			pipe := c.Pipeline()
			got := pipe.Get(ctx, "k")
			pipe.Exec(ctx)
			if !IsUnavailable(got.Err()) {
				t.Errorf("%v, %q", got.Err(), got.Val())
			}
		})
	}
	all.Wait()
}
