package redistest

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestRedistestNew_IsEmptyEachTime(t *testing.T) {
	c := New(t)
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := New(t).Get(t.Context(), "k").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("get: %v, want redis.Nil", err)
	}
}

func TestRedistestCount_CountsPipelineAsOneRoundTrip(t *testing.T) {
	c := New(t)
	n := Count(c)
	c.Get(t.Context(), "k")
	c.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		p.Get(t.Context(), "k")
		p.Get(t.Context(), "k")
		return nil
	})
	if got := n.TakeCount(); got != 2 {
		t.Errorf("%d round trips, want 2", got)
	}
	if got := n.TakeCount(); got != 0 {
		t.Errorf("%d round trips after a Take, want 0", got)
	}
}

func TestRedistestServer_RestartsAtSameAddress(t *testing.T) {
	r := NewServer(t)
	c := r.Client()
	if err := c.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	r.Stop()
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Error("answers while stopped")
	}
	r.Start()
	fresh := r.Client()
	if err := fresh.Get(t.Context(), "k").Err(); !errors.Is(err, redis.Nil) {
		t.Errorf("get after a restart: %v, want redis.Nil", err)
	}
}

func TestRedistestServer_HangsBreaksAndHeals(t *testing.T) {
	r := NewServer(t)
	if err := r.Client().Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	r.Hang()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := r.Client().Ping(ctx).Err(); !isTimeout(err) {
		t.Errorf("hung: %v, want a timeout", err)
	}
	r.Break()
	if err := r.Client().Ping(t.Context()).Err(); err == nil || isTimeout(err) {
		t.Errorf("broken: %v, want an error at once", err)
	}
	r.Heal()
	if err := r.Client().Ping(t.Context()).Err(); err != nil {
		t.Errorf("healed: %v", err)
	}
}

// isTimeout: the deadline of the context shows as that of the connection.
func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}
