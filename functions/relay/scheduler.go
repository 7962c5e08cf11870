package relay

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

// Polls for due shards are far enough apart to be cheap, and close enough together for the delay of
// an event to be short.
const (
	pollBusy = 10 * time.Millisecond  // after a lease with progress
	pollIdle = 100 * time.Millisecond // while no row is due
	// at most, doubling from pollIdle, while Pub/Sub or Postgres is unavailable
	pollUnavailable = 5 * time.Second
	pollNoProgress  = time.Second // at most, between leases of a shard without a row to send
	pollTimeShare   = 10          // polls take at most 1/10 of the time, however slow Postgres is
)

// lease is one turn of a worker on a shard: up to maxBatchesPerLease batches. Each batch takes and
// returns the shard's advisory lock.
type lease struct {
	shard  string
	cursor string // where the next batch begins; "" is the start of the shard

	progressed bool // a row was published, charged or deleted
	blocked    bool // a row was left because Pub/Sub or Postgres is unavailable
	hasMore    bool // the shard may have due rows at cursor
}

// scheduler decides which shards the workers drain next, and when to poll again. Only the goroutine
// of run.drain uses it.
type scheduler struct {
	queue    []lease
	leased   map[string]bool         // shards under a lease
	backoffs map[string]shardBackoff // shards without progress in the last lease

	polledAt            time.Time
	pollInterval        time.Duration
	progressed, blocked bool // in a lease since the last poll
}

// shardBackoff keeps a shard out of the queue for delay, until a point in time.
type shardBackoff struct {
	delay time.Duration
	until time.Time
}

func newScheduler() *scheduler {
	return &scheduler{leased: map[string]bool{}, backoffs: map[string]shardBackoff{}, pollInterval: pollIdle}
}

// next returns the first lease of the queue when a worker is free.
func (s *scheduler) next(workers int) (l lease, ready bool) {
	if len(s.queue) == 0 || len(s.leased) >= workers {
		return lease{}, false
	}
	return s.queue[0], true
}

// begin takes l, the first lease, from the queue.
func (s *scheduler) begin(l lease) {
	s.queue = s.queue[1:]
	s.leased[l.shard] = true
}

// isIdle reports that the last poll and the leases after it moved no row.
func (s *scheduler) isIdle() bool {
	return !s.polledAt.IsZero() && len(s.leased) == 0 && len(s.queue) == 0 && !s.progressed
}

// pollDue reads the shards with due rows, a query of up to 3 s, and queues the shards not
// queued, leased or in backoff yet, in random order. It returns the time until the next poll. With
// Options.Once pollDue waits for the queued leases first, and returns 0 when no shard was queued.
func (r *run) pollDue(ctx context.Context, s *scheduler) time.Duration {
	if r.options.Once && len(s.queue)+len(s.leased) > 0 {
		return pollBusy // the poll after the last lease decides whether the run ends
	}
	begun := time.Now()
	limited, cancel := context.WithTimeout(ctx, queryTimeout)
	due, err := outbox.DueShards(limited, r.relay.db, r.relay.now())
	cancel()
	if ctx.Err() == nil {
		r.setPollErr(err)
	}
	if s.blocked = s.blocked || err != nil; s.blocked && !s.progressed {
		s.pollInterval = min(2*s.pollInterval, pollUnavailable)
	} else {
		s.pollInterval = pollIdle
	}
	s.polledAt, s.progressed, s.blocked = time.Now(), false, false
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	for _, shard := range due {
		queued := slices.ContainsFunc(s.queue, func(l lease) bool { return l.shard == shard })
		if !queued && !s.leased[shard] && !s.polledAt.Before(s.backoffs[shard].until) {
			s.queue = append(s.queue, lease{shard: shard})
		}
	}
	if r.options.Once && len(s.queue) == 0 {
		return 0
	}
	return max(s.pollInterval, pollTimeShare*s.polledAt.Sub(begun))
}

// end records the result of a lease and reports whether to poll again soon. A lease with more rows
// goes to the end of the queue. A lease without progress puts the shard into backoff, doubling from
// 100 ms to 5 s, or to 1 s when another relay holds the shard or the rows wait for their due time.
func (s *scheduler) end(l lease, breakersClosed bool) (soon bool) {
	delete(s.leased, l.shard)
	s.progressed, s.blocked = s.progressed || l.progressed, s.blocked || l.blocked
	switch {
	case l.hasMore:
		s.queue = append(s.queue, lease{shard: l.shard, cursor: l.cursor})
	case l.progressed:
		delete(s.backoffs, l.shard)
	default:
		limit := pollUnavailable
		if !l.blocked {
			limit = pollNoProgress
		}
		delay := min(max(2*s.backoffs[l.shard].delay, pollIdle), limit)
		s.backoffs[l.shard] = shardBackoff{delay, time.Now().Add(delay)}
	}
	if l.progressed && breakersClosed {
		clear(s.backoffs) // Pub/Sub and Postgres are available
	}
	return l.progressed
}
