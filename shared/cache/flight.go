package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

const (
	// flightTimeout bounds a flight: the 2,500 ms of a request less headroom.
	flightTimeout = 2400 * time.Millisecond
	// headroom is the time between the end of a flight and the deadline of the starter: half to
	// store the entry, half to write the response.
	headroom = 100 * time.Millisecond
	// gracePeriod is how long a flight waits for Load after the end of the context.
	gracePeriod = 50 * time.Millisecond
	// retryMargin is the time a caller must have left beyond the deadline of a timed-out flight to
	// start another flight.
	retryMargin = 250 * time.Millisecond
)

var errGoexit = errors.New("cache: the load ended its goroutine")

// flight is an attempt of this process to get an entry, shared by all callers during the attempt.
// Any caller may leave. A flight without callers still ends within flightTimeout; if the process
// stops before, only the attempt is lost.
type flight struct {
	deadline  time.Time
	shortened bool // the starter's deadline set the deadline
	done      chan struct{}

	// The result, valid after done is closed.
	entry *Entry
	state State
	err   error
}

// loadFunc finds or loads an entry.
type loadFunc func(context.Context) (*Entry, State, error)

// join returns the current flight of a key, or starts a flight with work.
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

// retryable reports whether a caller should start a new flight after joining this failed flight:
// this flight did not wait for another process, or the starter had clearly less time than the
// caller.
func (f *flight) retryable(ctx context.Context) bool {
	if f.shortened && errors.Is(f.err, context.DeadlineExceeded) {
		deadline, limited := ctx.Deadline()
		return !limited || deadline.Add(-headroom).Sub(f.deadline) > retryMargin
	}
	return errors.Is(f.err, errBusy)
}

// runWithLease calls do on a new goroutine and extends the lease until do returns. The error is
// context.DeadlineExceeded if do runs longer than gracePeriod after the deadline of ctx.
func runWithLease(ctx context.Context, l *lease, do func(context.Context) (Loaded, error)) (Loaded, error) {
	type outcome struct {
		loaded Loaded
		err    error
	}
	result := make(chan outcome, 1)
	go func() {
		o := outcome{err: errGoexit}
		defer func() {
			// no caller recovers on this goroutine, and a bad response must not stop the process
			if v := recover(); v != nil {
				o.err = fmt.Errorf("cache: load panicked: %v\n%s", v, debug.Stack())
			}
			result <- o
		}()
		o.loaded, o.err = do(ctx)
	}()
	extend := time.NewTicker(extendInterval)
	defer extend.Stop()
	deadline, _ := ctx.Deadline()
	abandon := time.NewTimer(time.Until(deadline) + gracePeriod)
	defer abandon.Stop()
	for {
		select {
		case o := <-result:
			return o.loaded, o.err
		case <-extend.C:
			go l.extend(ctx) // a slow Redis must not delay the result
		case <-abandon.C:
			return Loaded{}, context.DeadlineExceeded
		}
	}
}
