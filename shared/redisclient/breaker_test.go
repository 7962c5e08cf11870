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

// testBreaker is a breaker with a simulated Redis whose reply the test sets.
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
		t.Fatalf("sixth command: got %v, %d sent, want ErrUnavailable, 0", err, d.sent)
	}
	d.clock = d.clock.Add(openTimeout)
	if err := d.get(t.Context()); err != nil || d.sent != 1 {
		t.Fatalf("after the pause: got %v, %d sent, want nil, 1", err, d.sent)
	}
	if err := d.get(t.Context()); err != nil {
		t.Fatalf("after a reply: got %v, want nil", err)
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
	err := d.ProcessHook(func(context.Context, redis.Cmder) error { // three further commands during the probe
		for i := range inner {
			inner[i] = d.get(ctx)
		}
		return io.ErrUnexpectedEOF
	})(ctx, cmd)
	if !errors.Is(err, io.ErrUnexpectedEOF) || d.sent != 0 {
		t.Fatalf("probe: got %v, %d further commands sent, want none", err, d.sent)
	}
	for _, err := range inner {
		if !errors.Is(err, ErrUnavailable) {
			t.Errorf("command during the probe: got %v, want ErrUnavailable", err)
		}
	}
	if err := d.get(ctx); !errors.Is(err, ErrUnavailable) {
		t.Errorf("after a failed probe: got %v, want ErrUnavailable", err)
	}
}

func TestBreaker_CountsOnlyConsecutiveFailures(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]error{"reply": nil, "absent key": redis.Nil, "error reply": redis.ErrNoScript} {
		t.Run(name, func(t *testing.T) {
			d := newTestBreaker()
			d.fail(t, maxFailures-1)
			d.reply = reply
			d.get(t.Context())
			d.fail(t, maxFailures-1)
			if err := d.get(t.Context()); errors.Is(err, ErrUnavailable) {
				t.Fatal("the breaker opened")
			}
		})
	}
}

func TestBreaker_IgnoresLocalFailures(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]error{
		"cancelled caller": context.Canceled, "deadline while waiting for a connection": context.DeadlineExceeded,
		"full pool": redis.ErrPoolTimeout, "closed client": redis.ErrClosed,
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestBreaker()
			d.fail(t, maxFailures-1)
			for d.reply = reply; d.sent < 20; {
				if err := d.get(t.Context()); errors.Is(err, ErrUnavailable) {
					t.Fatal("the breaker opened")
				}
			}
			d.fail(t, 1)
			if err := d.get(t.Context()); !errors.Is(err, ErrUnavailable) {
				t.Fatal("the breaker did not count the earlier failures")
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
			t.Fatal("the breaker opened")
		}
	}
}

func TestBreaker_IgnoresFailureWhileOthersSucceed(t *testing.T) {
	t.Parallel()
	d := newTestBreaker()
	ctx := t.Context()
	slow := func(context.Context, redis.Cmder) error { // another command succeeds meanwhile
		d.reply = nil
		d.get(ctx)
		return io.ErrUnexpectedEOF
	}
	for range 2 * maxFailures {
		if err := d.ProcessHook(slow)(ctx, redis.NewStringCmd(ctx, "get", "k")); errors.Is(err, ErrUnavailable) {
			t.Fatal("the breaker opened")
		}
	}
}

func TestBreaker_LateReplyClosesIt(t *testing.T) {
	t.Parallel()
	d := newTestBreaker()
	d.fail(t, maxFailures-1)
	d.now = func() time.Time { // the breaker reads the clock between counting the last failure and opening
		d.onReply()
		return d.clock
	}
	d.onFailure(d.replies.Load())
	d.now = func() time.Time { return d.clock }
	d.clock, d.reply = d.clock.Add(openTimeout), nil
	for range 2 { // the probe, and a command after it
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
		t.Fatal("the breaker opened too early")
	}
	dial(ctx, "tcp", "nowhere")
	if err := d.get(ctx); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("after five failed dials: got %v, want ErrUnavailable", err)
	}
}

func TestBreaker_RefusesWholePipeline(t *testing.T) {
	t.Parallel()
	d := newTestBreaker()
	ctx := t.Context()
	d.fail(t, 5)
	cmds := []redis.Cmder{redis.NewStringCmd(ctx, "get", "a"), redis.NewStringCmd(ctx, "get", "b")}
	d.ProcessPipelineHook(func(context.Context, []redis.Cmder) error { t.Error("the pipeline was sent"); return nil })(ctx, cmds)
	for _, cmd := range cmds {
		if !errors.Is(cmd.Err(), ErrUnavailable) {
			t.Errorf("%v: got %v, want ErrUnavailable", cmd.Args(), cmd.Err())
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
		t.Fatalf("after five broken pipelines: got %v, want ErrUnavailable", err)
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
		t.Fatalf("running server: got %v, want redis.Nil", err)
	}
	server.Stop()
	for range maxFailures {
		if err := get(); !IsUnavailable(err) || errors.Is(err, ErrUnavailable) {
			t.Fatalf("stopped server: got %v, want an unavailable Redis", err)
		}
	}
	if err := get(); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("stopped server and open breaker: got %v, want ErrUnavailable", err)
	}
	server.Start()
	clock = clock.Add(openTimeout)
	// the open breaker lets the HELLO of the new connection pass
	if err := get(); !errors.Is(err, redis.Nil) {
		t.Fatalf("restarted server: got %v, want redis.Nil", err)
	}
	if err := get(); !errors.Is(err, redis.Nil) {
		t.Fatalf("second command to the restarted server: got %v, want redis.Nil", err)
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
			t.Fatalf("hung server: got %v, want an unavailable Redis", err)
		}
	}
	if err := c.Get(t.Context(), "k").Err(); !errors.Is(err, ErrUnavailable) {
		t.Fatalf("hung server and open breaker: got %v, want ErrUnavailable", err)
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
		t.Errorf("slow server: got %v, want redis.Nil", err)
	}
	server.Hang()
	for range maxFailures {
		c.Get(t.Context(), "k")
	}
	if err := longer.Get(t.Context(), "k").Err(); !errors.Is(err, ErrUnavailable) {
		t.Errorf("hung server and open breaker: got %v, want ErrUnavailable", err)
	}
}
