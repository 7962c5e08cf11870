package redisclient

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/redistest"
)

// testBreaker is a breaker before a Redis that answers whatever the test says.
type testBreaker struct {
	breaker
	clock time.Time
	reply error
	sent  int
}

func newTestBreaker() *testBreaker {
	d := &testBreaker{clock: time.Unix(1_800_000_000, 0)}
	d.now = func() time.Time { return d.clock }
	return d
}

func (d *testBreaker) get(ctx context.Context) error {
	cmd := redis.NewStringCmd(ctx, "get", "k")
	return d.ProcessHook(func(context.Context, redis.Cmder) error {
		d.sent++
		return d.reply
	})(ctx, cmd)
}

func (d *testBreaker) fail(t *testing.T, times int) {
	t.Helper()
	d.reply = io.ErrUnexpectedEOF
	for range times {
		d.get(t.Context())
	}
}

func TestBreaker_OpensForOneSecondAfterFiveFailures(t *testing.T) {
	t.Parallel()
	d := newTestBreaker()
	d.fail(t, 5)
	d.sent, d.reply = 0, nil
	if err := d.get(t.Context()); !errors.Is(err, ErrUnavailable) || d.sent != 0 {
		t.Fatalf("sixth command: %v, sent %d", err, d.sent)
	}
	d.clock = d.clock.Add(openTimeout)
	if err := d.get(t.Context()); err != nil || d.sent != 1 {
		t.Fatalf("after the pause: %v, sent %d", err, d.sent)
	}
	if err := d.get(t.Context()); err != nil {
		t.Fatalf("once it answered: %v", err)
	}
}

func TestBreaker_SendsOneProbeWhenHalfOpen(t *testing.T) {
	t.Parallel()
	d := newTestBreaker()
	d.fail(t, 5)
	d.clock, d.sent = d.clock.Add(openTimeout), 0
	ctx := t.Context()
	inner := make([]error, 3)
	cmd := redis.NewStringCmd(ctx, "get", "k")
	err := d.ProcessHook(func(context.Context, redis.Cmder) error { // while this one is on its way, three others come
		for i := range inner {
			inner[i] = d.get(ctx)
		}
		return io.ErrUnexpectedEOF
	})(ctx, cmd)
	if !errors.Is(err, io.ErrUnexpectedEOF) || d.sent != 0 {
		t.Fatalf("the try: %v, others sent %d", err, d.sent)
	}
	for _, err := range inner {
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("another command: %v", err)
		}
	}
	if err := d.get(ctx); !errors.Is(err, ErrUnavailable) {
		t.Errorf("after a failed try: %v", err)
	}
}

func TestBreaker_CountsOnlyConsecutiveFailures(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]error{"an answer": nil, "an absent key": redis.Nil, "an error reply": redis.ErrNoScript} {
		t.Run(name+" starts the count again", func(t *testing.T) {
			d := newTestBreaker()
			d.fail(t, maxFailures-1)
			d.reply = reply
			d.get(t.Context())
			d.fail(t, maxFailures-1)
			if err := d.get(t.Context()); errors.Is(err, ErrUnavailable) {
				t.Fatal("the door shut")
			}
		})
	}
}

func TestBreaker_IgnoresLocalFailures(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]error{
		"a caller who left": context.Canceled, "a caller out of time in our queue": context.DeadlineExceeded,
		"a busy pool": redis.ErrPoolTimeout, "a closed client": redis.ErrClosed,
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestBreaker()
			d.fail(t, maxFailures-1)
			for d.reply = reply; d.sent < 20; {
				if err := d.get(t.Context()); errors.Is(err, ErrUnavailable) {
					t.Fatal("the door shut")
				}
			}
			d.fail(t, 1)
			if err := d.get(t.Context()); !errors.Is(err, ErrUnavailable) {
				t.Fatal("the failures before it were forgotten")
			}
		})
	}
}

func TestBreaker_IgnoresFailuresWithShortDeadline(t *testing.T) {
	t.Parallel()
	d := newTestBreaker()
	d.clock = time.Now()
	ctx, cancel := context.WithDeadline(t.Context(), d.clock.Add(minTimeout-time.Millisecond))
	defer cancel()
	d.reply = os.ErrDeadlineExceeded
	for range 10 {
		if err := d.get(ctx); errors.Is(err, ErrUnavailable) {
			t.Fatal("the door shut")
		}
	}
}

func TestBreaker_IgnoresFailureWhileOthersSucceed(t *testing.T) {
	t.Parallel()
	d := newTestBreaker()
	ctx := t.Context()
	slow := func(context.Context, redis.Cmder) error { // meanwhile another command is answered
		d.reply = nil
		d.get(ctx)
		return io.ErrUnexpectedEOF
	}
	for range 2 * maxFailures {
		if err := d.ProcessHook(slow)(ctx, redis.NewStringCmd(ctx, "get", "k")); errors.Is(err, ErrUnavailable) {
			t.Fatal("the door shut")
		}
	}
}

func TestBreaker_LateReplyClosesIt(t *testing.T) {
	t.Parallel()
	d := newTestBreaker()
	d.fail(t, maxFailures-1)
	d.now = func() time.Time { // the clock is read between counting the last failure and shutting the door
		d.onReply()
		return d.clock
	}
	d.onFailure(d.replies.Load())
	d.now = func() time.Time { return d.clock }
	d.clock, d.reply = d.clock.Add(openTimeout), nil
	for range 2 { // one tries, and then all may pass
		if err := d.get(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBreaker_CountsFailedDialOnce(t *testing.T) {
	t.Parallel()
	d := newTestBreaker()
	ctx := t.Context()
	refused := &net.OpError{Op: "dial", Err: errors.New("refused")}
	dial := d.DialHook(func(context.Context, string, string) (net.Conn, error) { return nil, refused })
	d.reply = refused
	for range maxFailures - 1 {
		dial(ctx, "tcp", "nowhere")
		d.get(ctx)
	}
	if err := d.get(ctx); errors.Is(err, ErrUnavailable) {
		t.Fatal("the door shut early")
	}
	dial(ctx, "tcp", "nowhere")
	if err := d.get(ctx); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("after five dials: %v", err)
	}
}

func TestBreaker_RefusesWholePipeline(t *testing.T) {
	t.Parallel()
	d := newTestBreaker()
	ctx := t.Context()
	d.fail(t, 5)
	cmds := []redis.Cmder{redis.NewStringCmd(ctx, "get", "a"), redis.NewStringCmd(ctx, "get", "b")}
	d.ProcessPipelineHook(func(context.Context, []redis.Cmder) error { t.Error("sent"); return nil })(ctx, cmds)
	for _, cmd := range cmds {
		if !errors.Is(cmd.Err(), ErrUnavailable) {
			t.Errorf("%v: %v", cmd.Args(), cmd.Err())
		}
	}
}

func TestBreaker_CountsPipelineBrokenAfterFirstReply(t *testing.T) {
	t.Parallel()
	d := newTestBreaker()
	ctx := t.Context()
	broken := func(_ context.Context, cmds []redis.Cmder) error {
		cmds[0].SetErr(redis.Nil)
		cmds[1].SetErr(io.ErrUnexpectedEOF)
		return redis.Nil
	}
	for range 5 {
		cmds := []redis.Cmder{redis.NewStringCmd(ctx, "get", "a"), redis.NewStringCmd(ctx, "get", "b")}
		d.ProcessPipelineHook(broken)(ctx, cmds)
	}
	if err := d.get(ctx); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("after five broken pipelines: %v", err)
	}
}

func TestBreaker_ServerStopsAndRestarts(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t)
	clock := time.Now()
	c := open(Config{Addr: server.Addr}, func() time.Time { return clock })
	defer c.Close()
	get := func() error { return c.Get(t.Context(), "k").Err() }
	if err := get(); !errors.Is(err, redis.Nil) {
		t.Fatalf("a server that is there: %v", err)
	}
	server.Stop()
	for range maxFailures {
		if err := get(); !IsUnavailable(err) || errors.Is(err, ErrUnavailable) {
			t.Fatalf("a server that is gone: %v", err)
		}
	}
	if err := get(); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("a server known to be gone: %v", err)
	}
	server.Start()
	clock = clock.Add(openTimeout)
	if err := get(); !errors.Is(err, redis.Nil) { // HELLO of the new connection passes the shut door with it
		t.Fatalf("a server that is back: %v", err)
	}
	if err := get(); !errors.Is(err, redis.Nil) {
		t.Fatalf("a server that stays: %v", err)
	}
}

func TestOpen_HungServerCostsOnlyItsTimeout(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t)
	c := Open(Config{Addr: server.Addr})
	defer c.Close()
	c.Get(t.Context(), "k")
	server.Hang()
	for range maxFailures {
		if err := c.Get(t.Context(), "k").Err(); !IsUnavailable(err) {
			t.Fatalf("hung: %v", err)
		}
	}
	if err := c.Get(t.Context(), "k").Err(); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("known to hang: %v", err)
	}
}

func TestWithLongTimeout_WaitsLongerAndSharesBreaker(t *testing.T) {
	t.Parallel()
	server := redistest.NewServer(t)
	c := Open(Config{Addr: server.Addr})
	defer c.Close()
	other := server.Client()
	longer := WithLongTimeout(c)
	if err := longer.Get(t.Context(), "k").Err(); !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	if err := other.Do(t.Context(), "CLIENT", "PAUSE", 2*ioTimeout.Milliseconds(), "ALL").Err(); err != nil {
		t.Fatal(err)
	}
	if err := longer.Get(t.Context(), "k").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("a server that takes long: %v", err)
	}
	server.Hang()
	for range maxFailures {
		c.Get(t.Context(), "k")
	}
	if err := longer.Get(t.Context(), "k").Err(); !errors.Is(err, ErrUnavailable) {
		t.Errorf("known to hang: %v", err)
	}
}
