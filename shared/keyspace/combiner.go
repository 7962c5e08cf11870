package keyspace

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
	underway = 2                     // round trips of pipelines at a time, before others wait for them
	together = 64                    // pipelines in one round trip at most
	hold     = 10 * time.Millisecond // then those who wait go beside: Redis is slow, or a connection hangs
	large    = 64                    // commands; a pipeline of more would keep those waiting who go along
	apart    = fairTry + hold        // those who go together may wait for an answer at most so much longer than one another
)

// combiner is a hook of the client that lets pipelines share round trips. One that finds fewer than two under way goes at
// once; those that come meanwhile wait for one to end, and go together. So a process with little to do gains and loses
// nothing, and one with much to do pays for fewer system calls, its own and those of Redis. Transactions and large pipelines
// go by themselves, and so does one with less than 25 ms left.
type combiner struct {
	patience time.Duration // of the client, for one read
	spare    func()        // called when somebody begins to wait, who may go beside and need a connection; nil: nothing is done
}

// ProcessHook leaves single commands alone.
func (combiner) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

// DialHook leaves dials alone.
func (combiner) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessPipelineHook makes one queue for what comes this way.
func (c combiner) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	q := &queue{send: next, spare: c.spare, free: underway}
	return func(ctx context.Context, cmds []redis.Cmder) error {
		now := time.Now()
		// The client waits no longer than its patience for anybody. Those without a deadline are taken to wait a little less, so
		// that they go along with guests, who have 100 ms.
		until := now.Add(c.patience - fairTry)
		if deadline, limited := ctx.Deadline(); limited && deadline.Before(until) {
			until = deadline
		}
		if cmds[0].Name() == "multi" || len(cmds) > large || until.Sub(now) < fairTry {
			return next(ctx, cmds)
		}
		return q.process(&ride{ctx: ctx, cmds: cmds, until: until})
	}
}

// ride is a pipeline on its way through a queue.
type ride struct {
	ctx   context.Context
	cmds  []redis.Cmder
	until time.Time    // when an answer is of no use any more
	turn  chan []*ride // of one that waits: whom it takes along, itself first; nil: it was taken along, and is answered
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

// errLost is the answer to commands that were with those of a caller that panicked.
var errLost = errors.New("keyspace: the round trip was lost")

// fail gives err to every command that has none: one that was not answered would be taken for one with an empty answer.
func (r *ride) fail(err error) {
	for _, cmd := range r.cmds {
		if cmd.Err() == nil {
			cmd.SetErr(err)
		}
	}
}

// queue is who waits for a round trip.
type queue struct {
	send  redis.ProcessPipelineHook
	spare func()

	mu      sync.Mutex
	free    int // round trips that may begin; below zero while some go beside
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
	first := len(q.waiting) == 1
	q.mu.Unlock()
	if first && q.spare != nil {
		q.spare()
	}
	var all []*ride
	select {
	case all = <-r.turn:
	case <-time.After(hold):
		q.push(r)
		all = <-r.turn
	case <-r.ctx.Done():
		if q.leave(r) {
			return q.send(r.ctx, r.cmds) // which sends nothing, and tells the commands so
		}
		all = <-r.turn // the commands are no longer its own until they are answered
	}
	if all == nil {
		return r.err()
	}
	return q.lead(all)
}

// lead makes one round trip for all, of which the first is the caller's, and passes on the right to make it.
func (q *queue) lead(all []*ride) error {
	var ended bool
	defer func() { // whatever happens: others wait
		q.pass()
		for _, other := range all[1:] {
			if !ended {
				other.fail(errLost)
			}
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
	_ = q.send(ctx, cmds) // the error is the first of all; every command has its own
	ended = true
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
	if q.free++; q.free > 0 && len(q.waiting) > 0 {
		q.begin(q.waiting[0])
	}
}

// push begins one more round trip, for one that has waited long enough and those that go along.
func (q *queue) push(r *ride) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if slices.Contains(q.waiting, r) {
		q.begin(r)
	}
}

// begin gives one that waits its turn, with all that may have their answers as late as it may: nobody is cut short by
// another's deadline.
func (q *queue) begin(first *ride) {
	q.free--
	all := []*ride{first}
	q.waiting = slices.DeleteFunc(q.waiting, func(r *ride) bool {
		if r != first && len(all) < together && r.until.Sub(first.until).Abs() <= apart {
			all = append(all, r)
			return true
		}
		return r == first
	})
	first.turn <- all
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
