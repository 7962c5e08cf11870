package redisclient

import (
	"context"
	"errors"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	maxInFlight       = 2                     // round trips of pipelines at a time, before others wait for them
	maxBatch          = 64                    // pipelines in one round trip at most
	maxWait           = 10 * time.Millisecond // then those who wait go beside: Redis is slow, or a connection hangs
	maxPipelineSize   = 64                    // commands; a pipeline of more would keep those waiting who go along
	maxDeadlineSpread = minTimeout + maxWait  // those who go together may wait for an answer at most so much longer than one another
)

// pipelineBatcher is a hook of the client that lets pipelines share round trips. One that finds fewer than two under way goes at
// once; those that come meanwhile wait for one to end, and go together. So a process with little to do gains and loses
// nothing, and one with much to do pays for fewer system calls, its own and those of Redis. Transactions and large pipelines
// go by themselves, and so does one with less than 25 ms left.
type pipelineBatcher struct {
	ioTimeout  time.Duration // of the client, for one read
	preconnect func()        // called when somebody begins to wait, who may go beside and need a connection; nil: nothing is done
}

// ProcessHook leaves single commands alone.
func (pipelineBatcher) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// DialHook leaves dials alone.
func (pipelineBatcher) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessPipelineHook makes one queue for what comes this way.
func (c pipelineBatcher) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	q := &queue{send: next, preconnect: c.preconnect, freeSlots: maxInFlight}
	return func(ctx context.Context, cmds []redis.Cmder) error {
		now := time.Now()
		// The client waits no longer than its patience for anybody. Those without a deadline are taken to wait a little less, so
		// that they go along with guests, who have 100 ms.
		until := now.Add(c.ioTimeout - minTimeout)
		if deadline, limited := ctx.Deadline(); limited && deadline.Before(until) {
			until = deadline
		}
		if cmds[0].Name() == "multi" || len(cmds) > maxPipelineSize || until.Sub(now) < minTimeout {
			return next(ctx, cmds)
		}
		return q.process(&waiter{ctx: ctx, cmds: cmds, deadline: until})
	}
}

// waiter is a pipeline on its way through a queue.
type waiter struct {
	ctx      context.Context
	cmds     []redis.Cmder
	deadline time.Time      // when an answer is of no use any more
	batch    chan []*waiter // of one that waits: whom it takes along, itself first; nil: it was taken along, and is answered
}

// err is what a pipeline that was answered fails with: its own first error, whatever became of the others.
func (r *waiter) err() error {
	for _, cmd := range r.cmds {
		if err := cmd.Err(); err != nil {
			return err
		}
	}
	return nil
}

// errLost is the answer to commands that were with those of a caller that panicked.
var errLost = errors.New("keyspace: the round trip was lost")

// failPending gives err to every command that has none: one that was not answered would be taken for one with an empty answer.
func (r *waiter) failPending(err error) {
	for _, cmd := range r.cmds {
		if cmd.Err() == nil {
			cmd.SetErr(err)
		}
	}
}

// queue is who waits for a round trip.
type queue struct {
	send       redis.ProcessPipelineHook
	preconnect func()

	mu        sync.Mutex
	freeSlots int // round trips that may begin; below zero while some go beside
	waiting   []*waiter
}

func (q *queue) process(r *waiter) error {
	q.mu.Lock()
	if q.freeSlots > 0 {
		q.freeSlots--
		q.mu.Unlock()
		return q.sendBatch([]*waiter{r})
	}
	r.batch = make(chan []*waiter, 1) // whoever gives the turn waits for nobody
	q.waiting = append(q.waiting, r)
	first := len(q.waiting) == 1
	q.mu.Unlock()
	if first && q.preconnect != nil {
		q.preconnect()
	}
	var all []*waiter
	select {
	case all = <-r.batch:
	case <-time.After(maxWait):
		q.dispatchExtra(r)
		all = <-r.batch
	case <-r.ctx.Done():
		if q.remove(r) {
			return q.send(r.ctx, r.cmds) // which sends nothing, and tells the commands so
		}
		all = <-r.batch // the commands are no longer its own until they are answered
	}
	if all == nil {
		return r.err()
	}
	return q.sendBatch(all)
}

// sendBatch makes one round trip for all, of which the first is the caller's, and passes on the right to make it.
func (q *queue) sendBatch(all []*waiter) error {
	var ended bool
	defer func() { // whatever happens: others wait
		q.releaseSlot()
		for _, other := range all[1:] {
			if !ended {
				other.failPending(errLost)
			}
			other.batch <- nil
		}
	}()
	if len(all) == 1 {
		return q.send(all[0].ctx, all[0].cmds)
	}
	ctx, cancel := batchContext(all)
	defer cancel()
	var cmds []redis.Cmder
	for _, r := range all {
		cmds = append(cmds, r.cmds...)
	}
	_ = q.send(ctx, cmds) // the error is the first of all; every command has its own
	ended = true
	return all[0].err()
}

// batchContext is the context of a common round trip. It ends with the first deadline of all, not when one caller hangs up.
func batchContext(all []*waiter) (context.Context, context.CancelFunc) {
	ctx := context.WithoutCancel(all[0].ctx)
	var first time.Time
	for _, r := range all {
		if deadline, limited := r.ctx.Deadline(); limited && (first.IsZero() || deadline.Before(first)) {
			first = deadline
		}
	}
	if first.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, first)
}

// releaseSlot gives the right to make a round trip to those who wait, or back.
func (q *queue) releaseSlot() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.freeSlots++; q.freeSlots > 0 && len(q.waiting) > 0 {
		q.dispatch(q.waiting[0])
	}
}

// dispatchExtra begins one more round trip, for one that has waited long enough and those that go along.
func (q *queue) dispatchExtra(r *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if slices.Contains(q.waiting, r) {
		q.dispatch(r)
	}
}

// dispatch gives one that waits its turn, with all that may have their answers as late as it may: nobody is cut short by
// another's deadline.
func (q *queue) dispatch(first *waiter) {
	q.freeSlots--
	all := []*waiter{first}
	q.waiting = slices.DeleteFunc(q.waiting, func(r *waiter) bool {
		if r != first && len(all) < maxBatch && r.deadline.Sub(first.deadline).Abs() <= maxDeadlineSpread {
			all = append(all, r)
			return true
		}
		return r == first
	})
	first.batch <- all
}

// remove takes a pipeline out of the queue, unless its turn has come.
func (q *queue) remove(r *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, r)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}
