package relay

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"

	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

const (
	pollAtMost   = 10 * time.Millisecond  // apart, while there is something to do
	pollIdle     = 100 * time.Millisecond // apart, while there is nothing
	pollGloomy   = 5 * time.Second        // apart at most, while nothing that is there can be sent
	pollHeld     = time.Second            // apart at most, visits of a lane with nothing for us
	pollShare    = 10                     // a look takes at most so small a part of the time, however long it takes
	spillEvery   = 3 * time.Second
	sendingMost  = 64 // requests to the broker at once
	askWithin    = 3 * time.Second
	markWithin   = 5 * time.Second
	countWithin  = 8 * time.Second
	spillsWithin = 10 * time.Second
)

// shift is one run: one who looks which lanes have something due, and workers who drain them.
type shift struct {
	relay   *Relay
	orders  Orders
	did     counts
	sky     *sky
	sending chan struct{} // holds a token for each request under way

	mu       sync.Mutex
	lookErr  error // of the last look for work
	laneErr  error // of the last batch
	spillErr bool  // was told
}

// counts are what was done so far.
type counts struct {
	published, refused, dropped, spilled, spillRefused, attempts, requests, outages, failures atomic.Int64

	last atomic.Pointer[string] // see Report.LastOutage
}

// outage counts a request to a topic that had no answer which counts. The broker's words are left out: outages are not the
// row's, and nobody knows what is in them.
func (c *counts) outage(topic string, code codes.Code) {
	c.outages.Add(1)
	what := topic + ": " + code.String()
	c.last.Store(&what)
}

func (c *counts) lastOutage() string {
	if what := c.last.Load(); what != nil {
		return *what
	}
	return ""
}

func (c *counts) read() Report {
	return Report{
		Published: c.published.Load(), Refused: c.refused.Load(), Dropped: c.dropped.Load(), Spilled: c.spilled.Load(),
		SpillRefused: c.spillRefused.Load(), Attempts: c.attempts.Load(), Requests: c.requests.Load(), Outages: c.outages.Load(),
		Failures: c.failures.Load(),
	}
}

func newShift(r *Relay, o Orders) *shift {
	return &shift{relay: r, orders: o, sky: newSky(), sending: make(chan struct{}, sendingMost)}
}

// looked and drained remember what Postgres said last of each.
func (s *shift) looked(err error) { s.remember(&s.lookErr, err) }

func (s *shift) drained(err error) { s.remember(&s.laneErr, err) }

func (s *shift) remember(last *error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *last = err; err != nil {
		s.did.failures.Add(1)
	}
}

func (s *shift) lastFailure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.lookErr, s.laneErr)
}

// work drains lanes until ctx ends, and returns when everybody has finished what they began.
func (s *shift) work(ctx context.Context) {
	var others sync.WaitGroup
	defer others.Wait()
	if s.orders.Once {
		s.unspill(ctx)
		// Nearly always nothing waits, and the process is new: then this is answered sooner than a look. What Postgres fails in
		// is left for the look to tell; so a Postgres that hangs must not have the whole run.
		ask, cancel := context.WithTimeout(ctx, askWithin)
		waits, err := outbox.Waits(ask, s.relay.db)
		cancel()
		if err == nil && !waits {
			return
		}
	} else {
		others.Go(func() { s.keepUnspilling(ctx) })
	}
	jobs, done := make(chan visit), make(chan visit)
	defer close(jobs)
	for range s.relay.workers {
		others.Go(func() {
			for v := range jobs {
				s.drain(ctx, &v)
				done <- v
			}
		})
	}
	p := plan{busy: map[string]bool{}, rest: map[string]rest{}, interval: pollIdle}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next, give := visit{}, jobs
		if len(p.queue) > 0 && len(p.busy) < s.relay.workers {
			next = p.queue[0]
		} else {
			give = nil
		}
		select {
		case <-ctx.Done():
			for len(p.busy) > 0 {
				delete(p.busy, (<-done).lane)
			}
			return
		case give <- next:
			p.queue = p.queue[1:]
			p.busy[next.lane] = true
		case v := <-done:
			if p.finished(v, s.sky.clear()) {
				timer.Reset(max(0, pollAtMost-time.Since(p.looked)))
			}
		case <-timer.C:
			if s.orders.Once && p.over() {
				return
			}
			timer.Reset(s.look(ctx, &p))
		}
	}
}

// unspill moves what waits in Redis. Without Redis the relay goes on; the next time is soon. Only one of a shift does
// it.
func (s *shift) unspill(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, spillsWithin)
	defer cancel()
	moved, refused, err := outbox.Unspill(within, s.relay.db, s.relay.rdb, s.relay.keys)
	s.did.spilled.Add(int64(moved))
	s.did.spillRefused.Add(int64(refused))
	if refused > 0 {
		slog.WarnContext(ctx, "outbox: rejected buffered rows are set aside", "rows", refused, "list", outbox.SpillRefusedKey(s.relay.keys))
	}
	if err != nil && ctx.Err() == nil && !s.spillErr {
		s.spillErr = true // once in a run is enough
		slog.WarnContext(ctx, "outbox: the buffer cannot be drained", "err", err.Error())
	}
}

func (s *shift) keepUnspilling(ctx context.Context) {
	tick := time.NewTicker(spillEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		s.unspill(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

const (
	// rowsAtOnce are sent in one transaction: what a relay that is killed has sent and not marked is sent again.
	rowsAtOnce = 32
	// batchesAtOnce are sent before the worker goes to another lane.
	batchesAtOnce = 8
)

// drain sends what is due in one lane, a batch at a time, until its end or until it is another lane's turn.
func (s *shift) drain(ctx context.Context, v *visit) {
	began := v.after
	for range batchesAtOnce {
		if ctx.Err() != nil {
			return
		}
		next, err := s.batch(ctx, v)
		if err != nil {
			s.drained(err)
			v.stuck = true
			return
		}
		s.drained(nil)
		if v.after = next; next == "" {
			break
		}
	}
	// Who began in the middle has not seen what is before it.
	v.more = v.after != "" || began != ""
}
