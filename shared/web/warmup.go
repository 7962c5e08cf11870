package web

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// warmUpTimeout is how long the first requests of a process wait for all its stores together. A store that takes longer is
// found, or not, by requests.
const warmUpTimeout = 500 * time.Millisecond

// warmUpGroup is what a function wants done while its process begins to listen.
type warmUpGroup struct {
	ctx    context.Context // ends with the last call, or when its time is over
	cancel context.CancelFunc
	tasks  []*warmUpTask
	wg     sync.WaitGroup
}

type warmUpTask struct {
	store string
	err   error
}

type warmUpKey struct{}

// WarmUp is for a function that opens with ctx: where it is opened because its process is about to listen, dial is called at
// once, beside the rest of the opening, and the first requests begin when it has ended, or its context has. So they do not
// spend on a new connection what they have for an answer, and the process listens meanwhile. That context ends half a
// second after the opening began; the error of dial is logged with the name of the store, and has no other effect. In any
// other process nothing is called. Not safe for concurrent use.
func WarmUp(ctx context.Context, store string, dial func(context.Context) error) {
	if a, listens := ctx.Value(warmUpKey{}).(*warmUpGroup); listens {
		c := &warmUpTask{store: store}
		a.tasks = append(a.tasks, c)
		a.wg.Go(func() { c.err = dial(a.ctx) })
	}
}

// wait waits for all calls, logs their errors and lets requests begin that wait still. A store that is away is no reason not to serve:
// it may be back before the first guest is there, and each request knows what it does without.
func (a *warmUpGroup) wait(log *slog.Logger) {
	a.wg.Wait()
	defer a.cancel()
	for _, c := range a.tasks {
		if c.err != nil {
			log.Warn("not reached before the first request", "store", c.store, "err", c.err.Error())
		}
	}
}
