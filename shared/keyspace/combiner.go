package keyspace

import (
	"context"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	underway = 2                     // round trips of pipelines at a time, before others wait for them
	together = 64                    // pipelines in one round trip at most
	hold     = 10 * time.Millisecond // then a pipeline goes by itself: Redis is slow, or a connection hangs
)

// combiner is a hook of the client that lets pipelines share round trips. One that finds fewer than two under way goes at
// once; those that come meanwhile wait for one to end, and go together. So a process with little to do gains and loses
// nothing, and one with much to do pays for fewer system calls, its own and those of Redis. Transactions go by themselves,
// and so does a pipeline with less than 25 ms left: the others would get no more.
type combiner struct{}

// ProcessHook leaves single commands alone.
func (combiner) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// DialHook leaves dials alone.
func (combiner) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessPipelineHook combines what goes the same way.
func (combiner) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	q := &queue{send: next, free: underway}
	return func(ctx context.Context, cmds []redis.Cmder) error {
		deadline, limited := ctx.Deadline()
		if cmds[0].Name() == "multi" || limited && time.Until(deadline) < fairTry {
			return next(ctx, cmds)
		}
		return q.process(&ride{ctx: ctx, cmds: cmds})
	}
}

// ride is a pipeline on its way through a queue.
type ride struct {
	ctx  context.Context
	cmds []redis.Cmder
	turn chan []*ride // of one that waits: whom it takes along, itself first; nil: it was taken along, and is answered
}

// err is what a pipeline that was answered fails with: its own first error, whatever became of the others.
func (r *ride) err() error {
	for _, cmd := range r.cmds {
		if err := cmd.Err(); err != nil {
			return err
		}
	}
	return nil
}

// queue is who waits for a round trip.
type queue struct {
	send redis.ProcessPipelineHook

	mu      sync.Mutex
	free    int // round trips that may begin
	waiting []*ride
}

func (q *queue) process(r *ride) error {
	q.mu.Lock()
	if q.free > 0 {
		q.free--
		q.mu.Unlock()
		return q.lead([]*ride{r})
	}
	r.turn = make(chan []*ride, 1) // whoever gives the turn waits for nobody
	q.waiting = append(q.waiting, r)
	q.mu.Unlock()
	select {
	case all := <-r.turn:
		return q.take(r, all)
	case <-time.After(hold):
	case <-r.ctx.Done():
	}
	if q.leave(r) {
		return q.send(r.ctx, r.cmds)
	}
	return q.take(r, <-r.turn) // its turn has come: the commands are no longer its own until they are answered
}

// take does what a turn is for.
func (q *queue) take(r *ride, all []*ride) error {
	if all == nil {
		return r.err()
	}
	return q.lead(all)
}

// lead makes one round trip for all, of which the first is the caller's, and passes on the right to make it.
func (q *queue) lead(all []*ride) error {
	defer func() { // whatever happens: others wait
		q.pass()
		for _, other := range all[1:] {
			other.turn <- nil
		}
	}()
	if len(all) == 1 {
		return q.send(all[0].ctx, all[0].cmds)
	}
	ctx, cancel := whole(all)
	defer cancel()
	var cmds []redis.Cmder
	for _, r := range all {
		cmds = append(cmds, r.cmds...)
	}
	_ = q.send(ctx, cmds) // every command carries its own error
	return all[0].err()
}

// whole is the context of a common round trip. It ends with the first deadline of all, not when one caller hangs up.
func whole(all []*ride) (context.Context, context.CancelFunc) {
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

// pass gives the right to make a round trip to those who wait, or back.
func (q *queue) pass() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.free++
		return
	}
	all := q.waiting[:min(together, len(q.waiting))]
	q.waiting = slices.Clone(q.waiting[len(all):])
	all[0].turn <- all
}

// leave takes a pipeline out of the queue, unless its turn has come.
func (q *queue) leave(r *ride) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, r)
	if i >= 0 {
		q.waiting = slices.Delete(q.waiting, i, i+1)
	}
	return i >= 0
}
