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
	maxInFlight = 2  // concurrent round trips before further pipelines wait
	maxBatch    = 64 // pipelines per round trip
	// then a waiting pipeline starts an extra round trip: Redis is slow
	maxWait           = 10 * time.Millisecond
	maxPipelineSize   = 64                   // commands; a larger pipeline would delay the rest of the batch
	maxDeadlineSpread = minTimeout + maxWait // between the deadlines of a batch and of its first pipeline
)

// pipelineBatcher is a client hook that sends several pipelines in one round trip. A pipeline with
// fewer than 2 round trips in flight goes at once. Later pipelines wait for the end of a round
// trip, at most 10 ms, and then share the next round trip. An idle process gains and loses nothing;
// a busy process and Redis make fewer system calls. Transactions, pipelines of more than 64
// commands, and pipelines with less than 25 ms left are never batched. The hook holds a mutex only
// to change the queue, never during I/O. Safe for concurrent use.
type pipelineBatcher struct {
	ioTimeout time.Duration // of the client, for a read

	// preconnect is called when the first pipeline begins to wait, because an extra round trip may
	// need a connection. May be nil.
	preconnect func()
}

// ProcessHook returns next: single commands are not batched.
func (pipelineBatcher) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// DialHook returns next.
func (pipelineBatcher) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessPipelineHook returns a hook with a queue of pipelines. The hook returns the first error of
// the pipeline's own commands, whatever happens to the rest of the batch. A pipeline cancelled
// while it waits is not sent; after the start of its batch it waits for the reply. If the caller
// that sends the batch panics, the other pipelines get errLost.
func (c pipelineBatcher) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	q := &queue{send: next, preconnect: c.preconnect, freeSlots: maxInFlight}
	return func(ctx context.Context, cmds []redis.Cmder) error {
		now := time.Now()
		// No pipeline waits longer than the client's timeout. A pipeline without a deadline counts
		// as 25 ms less patient, so that a batch can combine the pipeline with guest requests,
		// which have 100 ms.
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

// waiter is a pipeline in a queue.
type waiter struct {
	ctx      context.Context
	cmds     []redis.Cmder
	deadline time.Time // after this time a reply is useless

	// batch, for a waiting pipeline, receives the batch to send, with this waiter first, or nil
	// after another waiter sent the batch.
	batch chan []*waiter
}

// err returns the first error of the pipeline's own commands, after the round trip.
func (r *waiter) err() error {
	for _, cmd := range r.cmds {
		if err := cmd.Err(); err != nil {
			return err
		}
	}
	return nil
}

// errLost is the error of commands in the batch of a caller that panicked.
var errLost = errors.New("redisclient: the round trip was lost")

// failPending sets err on every command without an error: an unanswered command would look like a
// command with an empty reply.
func (r *waiter) failPending(err error) {
	for _, cmd := range r.cmds {
		if cmd.Err() == nil {
			cmd.SetErr(err)
		}
	}
}

// queue holds the pipelines waiting for a round trip.
type queue struct {
	send       redis.ProcessPipelineHook
	preconnect func()

	mu        sync.Mutex
	freeSlots int // round trips allowed to start; negative during extra round trips
	waiting   []*waiter
}

// process sends the pipeline of r, at once or as part of a batch, and returns after the reply.
func (q *queue) process(r *waiter) error {
	q.mu.Lock()
	if q.freeSlots > 0 {
		q.freeSlots--
		q.mu.Unlock()
		return q.sendBatch([]*waiter{r})
	}
	r.batch = make(chan []*waiter, 1) // buffered: the sender never waits
	q.waiting = append(q.waiting, r)
	first := len(q.waiting) == 1
	q.mu.Unlock()
	if first && q.preconnect != nil {
		q.preconnect()
	}
	var batch []*waiter
	select {
	case batch = <-r.batch:
	case <-time.After(maxWait):
		q.dispatchExtra(r)
		batch = <-r.batch
	case <-r.ctx.Done():
		if q.remove(r) {
			return q.send(r.ctx, r.cmds) // sends nothing and sets the error of the context on the commands
		}
		batch = <-r.batch // the batch owns the commands until the reply
	}
	if batch == nil {
		return r.err()
	}
	return q.sendBatch(batch)
}

// sendBatch sends the pipelines of batch in one round trip and then frees the slot. The first
// pipeline is the caller's; sendBatch returns the first error of this pipeline.
func (q *queue) sendBatch(batch []*waiter) error {
	var ended bool
	defer func() { // also after a panic: the rest of the batch waits
		q.releaseSlot()
		for _, other := range batch[1:] {
			if !ended {
				other.failPending(errLost)
			}
			other.batch <- nil
		}
	}()
	if len(batch) == 1 {
		return q.send(batch[0].ctx, batch[0].cmds)
	}
	ctx, cancel := batchContext(batch)
	defer cancel()
	var cmds []redis.Cmder
	for _, r := range batch {
		cmds = append(cmds, r.cmds...)
	}
	_ = q.send(ctx, cmds) // the first error of all pipelines; every command has an own error
	ended = true
	return batch[0].err()
}

// batchContext returns the context of a batch. The context ends at the earliest deadline of the
// batch, and not when a caller is cancelled.
func batchContext(batch []*waiter) (context.Context, context.CancelFunc) {
	ctx := context.WithoutCancel(batch[0].ctx)
	var first time.Time
	for _, r := range batch {
		if deadline, limited := r.ctx.Deadline(); limited && (first.IsZero() || deadline.Before(first)) {
			first = deadline
		}
	}
	if first.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, first)
}

// releaseSlot gives the slot of a finished round trip to the first waiting pipeline, or frees the
// slot.
func (q *queue) releaseSlot() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.freeSlots++; q.freeSlots > 0 && len(q.waiting) > 0 {
		q.dispatch(q.waiting[0])
	}
}

// dispatchExtra starts an extra round trip for r, after maxWait, unless the turn of r has come.
func (q *queue) dispatchExtra(r *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if slices.Contains(q.waiting, r) {
		q.dispatch(r)
	}
}

// dispatch starts the round trip of first, together with the waiting pipelines whose deadlines
// differ from the deadline of first by at most maxDeadlineSpread. The round trip ends at the
// earliest deadline of the batch, so a pipeline may lose up to twice maxDeadlineSpread, 70 ms. The
// caller holds the mutex.
func (q *queue) dispatch(first *waiter) {
	q.freeSlots--
	batch := []*waiter{first}
	q.waiting = slices.DeleteFunc(q.waiting, func(r *waiter) bool {
		if r != first && len(batch) < maxBatch && r.deadline.Sub(first.deadline).Abs() <= maxDeadlineSpread {
			batch = append(batch, r)
			return true
		}
		return r == first
	})
	first.batch <- batch
}

// remove takes r out of the queue and reports success; false means that the turn of r has come.
func (q *queue) remove(r *waiter) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, r)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}
