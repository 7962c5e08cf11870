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
	pollBusy              = 10 * time.Millisecond  // apart, while there is something to do
	pollIdle              = 100 * time.Millisecond // apart, while there is nothing
	pollUnavailable       = 5 * time.Second        // apart at most, while nothing that is there can be sent
	pollNoProgress        = time.Second            // apart at most, visits of a lane with nothing for us
	pollTimeShare         = 10                     // a look takes at most so small a part of the time, however long it takes
	drainInterval         = 3 * time.Second
	maxConcurrentRequests = 64 // requests to the broker at once
	queryTimeout          = 3 * time.Second
	markTimeout           = 5 * time.Second
	countTimeout          = 8 * time.Second
	drainTimeout          = 10 * time.Second
)

// run is one run: one who looks which lanes have something due, and workers who drain them.
type run struct {
	relay        *Relay
	options      Options
	counters     counters
	breakers     *breakers
	requestSlots chan struct{} // holds a token for each request under way

	mu             sync.Mutex
	pollErr        error // of the last look for work
	shardErr       error // of the last batch
	drainErrLogged bool  // was told
}

// counters are what was done so far.
type counters struct {
	published, rejected, dropped, drained, drainRejected, attempts, requests, outages, failures atomic.Int64

	outageSummary atomic.Pointer[string] // see Report.LastOutage
}

// addOutage counts a request to a topic that had no answer which counts. The broker's words are left out: outages are not the
// row's, and nobody knows what is in them.
func (c *counters) addOutage(topic string, code codes.Code) {
	c.outages.Add(1)
	what := topic + ": " + code.String()
	c.outageSummary.Store(&what)
}

func (c *counters) lastOutage() string {
	if what := c.outageSummary.Load(); what != nil {
		return *what
	}
	return ""
}

func (c *counters) snapshot() Report {
	return Report{
		Published: c.published.Load(), Rejected: c.rejected.Load(), Dropped: c.dropped.Load(), Drained: c.drained.Load(),
		DrainRejected: c.drainRejected.Load(), Attempts: c.attempts.Load(), Requests: c.requests.Load(), Outages: c.outages.Load(),
		Failures: c.failures.Load(),
	}
}

func newRun(r *Relay, o Options) *run {
	return &run{relay: r, options: o, breakers: newBreakers(), requestSlots: make(chan struct{}, maxConcurrentRequests)}
}

// setPollErr and drained remember what Postgres said last of each.
func (s *run) setPollErr(err error) { s.setErr(&s.pollErr, err) }

func (s *run) setShardErr(err error) { s.setErr(&s.shardErr, err) }

func (s *run) setErr(last *error, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *last = err; err != nil {
		s.counters.failures.Add(1)
	}
}

func (s *run) lastErr() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.pollErr, s.shardErr)
}

// drainShards drains lanes until ctx ends, and returns when everybody has finished what they began.
func (s *run) drainShards(ctx context.Context) {
	var others sync.WaitGroup
	defer others.Wait()
	if s.options.Once {
		s.drainBuffer(ctx)
		// Nearly always nothing waits, and the process is new: then this is answered sooner than a look. What Postgres fails in
		// is left for the look to tell; so a Postgres that hangs must not have the whole run.
		ask, cancel := context.WithTimeout(ctx, queryTimeout)
		waits, err := outbox.HasPending(ask, s.relay.db)
		cancel()
		if err == nil && !waits {
			return
		}
	} else {
		others.Go(func() { s.drainBufferPeriodically(ctx) })
	}
	jobs, done := make(chan lease), make(chan lease)
	defer close(jobs)
	for range s.relay.workers {
		others.Go(func() {
			for v := range jobs {
				s.drainShard(ctx, &v)
				done <- v
			}
		})
	}
	p := scheduler{leased: map[string]bool{}, backoffs: map[string]shardBackoff{}, pollInterval: pollIdle}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		next, give := lease{}, jobs
		if len(p.queue) > 0 && len(p.leased) < s.relay.workers {
			next = p.queue[0]
		} else {
			give = nil
		}
		select {
		case <-ctx.Done():
			for len(p.leased) > 0 {
				delete(p.leased, (<-done).shard)
			}
			return
		case give <- next:
			p.queue = p.queue[1:]
			p.leased[next.shard] = true
		case v := <-done:
			if p.endLease(v, s.breakers.allClosed()) {
				timer.Reset(max(0, pollBusy-time.Since(p.polledAt)))
			}
		case <-timer.C:
			if s.options.Once && p.isIdle() {
				return
			}
			timer.Reset(s.pollDue(ctx, &p))
		}
	}
}

// drainBuffer moves what waits in Redis. Without Redis the relay goes on; the next time is soon. Only one of a shift does
// it.
func (s *run) drainBuffer(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, drainTimeout)
	defer cancel()
	moved, refused, err := outbox.DrainBuffer(within, s.relay.db, s.relay.rdb, s.relay.keys)
	s.counters.drained.Add(int64(moved))
	s.counters.drainRejected.Add(int64(refused))
	if refused > 0 {
		slog.WarnContext(ctx, "outbox: rejected buffered rows are set aside", "rows", refused, "list", outbox.BufferRejectedKey(s.relay.keys))
	}
	if err != nil && ctx.Err() == nil && !s.drainErrLogged {
		s.drainErrLogged = true // once in a run is enough
		slog.WarnContext(ctx, "outbox: the buffer cannot be drained", "err", err.Error())
	}
}

func (s *run) drainBufferPeriodically(ctx context.Context) {
	tick := time.NewTicker(drainInterval)
	defer tick.Stop()
	for ctx.Err() == nil {
		s.drainBuffer(ctx)
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

const (
	// batchSize are sent in one transaction: what a relay that is killed has sent and not marked is sent again.
	batchSize = 32
	// maxBatchesPerLease are sent before the worker goes to another lane.
	maxBatchesPerLease = 8
)

// drainShard sends what is due in one lane, a batch at a time, until its end or until it is another lane's turn.
func (s *run) drainShard(ctx context.Context, v *lease) {
	began := v.cursor
	for range maxBatchesPerLease {
		if ctx.Err() != nil {
			return
		}
		next, err := s.processBatch(ctx, v)
		if err != nil {
			s.setShardErr(err)
			v.blocked = true
			return
		}
		s.setShardErr(nil)
		if v.cursor = next; next == "" {
			break
		}
	}
	// Who began in the middle has not seen what is before it.
	v.hasMore = v.cursor != "" || began != ""
}
