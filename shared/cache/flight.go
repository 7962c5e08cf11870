package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

const (
	// flightTimeout bounds what one flight may take, whoever started it: a request's 2,500 ms less headroom.
	flightTimeout = 2400 * time.Millisecond
	// headroom is what a flight leaves of its starter's time: half of it to store the answer, half to write it.
	headroom = 100 * time.Millisecond
	// gracePeriod is how much longer a Fill that forgets its context is waited for.
	gracePeriod = 50 * time.Millisecond
	// retryMargin is by how much a caller's time must exceed a flight's that ran out of it to be worth another.
	retryMargin = 250 * time.Millisecond
)

var errGoexit = errors.New("cache: fill ended its goroutine")

// flight is one attempt of this process at an entry, shared by the callers that come meanwhile. It belongs to none of
// them: each may leave. When all have, it still ends, within workLimit, and if the process is stopped before that,
// nothing is lost but the attempt.
type flight struct {
	deadline  time.Time
	shortened bool // until was cut to what its starter had
	done      chan struct{}

	// Of the work, once done is closed.
	entry *Entry
	state State
	err   error
}

// loadFunc makes or finds an entry.
type loadFunc func(context.Context) (*Entry, State, error)

// join returns the flight for a key, and whether this call started it with its own work.
func (c *Cache) join(ctx context.Context, key string, work loadFunc) (f *flight, started bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[key]; f != nil {
		return f, false
	}
	f = &flight{deadline: time.Now().Add(flightTimeout), done: make(chan struct{})}
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-headroom).Before(f.deadline) {
		f.deadline, f.shortened = deadline.Add(-headroom), true
	}
	c.flights[key] = f
	go c.runFlight(context.WithoutCancel(ctx), key, f, work)
	return f, true
}

func (c *Cache) runFlight(ctx context.Context, key string, f *flight, work loadFunc) {
	ctx, cancel := context.WithDeadline(ctx, f.deadline)
	defer cancel()
	f.entry, f.state, f.err = work(ctx)
	c.mu.Lock()
	delete(c.flights, key)
	c.mu.Unlock()
	close(f.done)
}

// retryable reports whether the flight's failure is none for a caller who joined it: it was not meant to wait, or its
// starter had clearly less time.
func (f *flight) retryable(ctx context.Context) bool {
	if f.shortened && errors.Is(f.err, context.DeadlineExceeded) {
		deadline, limited := ctx.Deadline()
		return !limited || deadline.Add(-headroom).Sub(f.deadline) > retryMargin
	}
	return errors.Is(f.err, errBusy)
}

// runWithLease calls do and keeps the lease alive meanwhile. It returns when do does, or a little after its context ended.
func runWithLease(ctx context.Context, l *lease, do func(context.Context) (Loaded, error)) (Loaded, error) {
	type outcome struct {
		filled Loaded
		err    error
	}
	answer := make(chan outcome, 1)
	go func() {
		o := outcome{err: errGoexit}
		defer func() {
			if v := recover(); v != nil { // here nobody above us would, and one bad answer must not stop the process
				o.err = fmt.Errorf("cache: fill panicked: %v\n%s", v, debug.Stack())
			}
			answer <- o
		}()
		o.filled, o.err = do(ctx)
	}()
	beat := time.NewTicker(extendInterval)
	defer beat.Stop()
	deadline, _ := ctx.Deadline()
	late := time.NewTimer(time.Until(deadline) + gracePeriod)
	defer late.Stop()
	for {
		select {
		case o := <-answer:
			return o.filled, o.err
		case <-beat.C:
			go l.extend(ctx) // aside, so that a slow Redis does not hold up the answer
		case <-late.C:
			return Loaded{}, context.DeadlineExceeded
		}
	}
}
