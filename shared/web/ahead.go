package web

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// aheadWithin is how long the first requests of a process wait for all its stores together. A store that takes longer is
// found, or not, by requests.
const aheadWithin = 500 * time.Millisecond

// ahead is what a function wants done while its process begins to listen.
type ahead struct {
	within context.Context // ends with the last call, or when its time is over
	end    context.CancelFunc
	calls  []*aheadCall
	all    sync.WaitGroup
}

type aheadCall struct {
	store string
	err   error
}

type aheadKey struct{}

// Ahead is for a function that opens with ctx: where it is opened because its process is about to listen, dial is called at
// once, beside the rest of the opening, and the first requests begin when it has ended, or its context has. So they do not
// spend on a new connection what they have for an answer, and the process listens meanwhile. That context ends half a
// second after the opening began; the error of dial is logged with the name of the store, and has no other effect. In any
// other process nothing is called. Not safe for concurrent use.
func Ahead(ctx context.Context, store string, dial func(context.Context) error) {
	if a, listens := ctx.Value(aheadKey{}).(*ahead); listens {
		c := &aheadCall{store: store}
		a.calls = append(a.calls, c)
		a.all.Go(func() { c.err = dial(a.within) })
	}
}

// settle waits for all calls, logs their errors and lets requests begin that wait still. A store that is away is no reason not to serve:
// it may be back before the first guest is there, and each request knows what it does without.
func (a *ahead) settle(log *slog.Logger) {
	a.all.Wait()
	defer a.end()
	for _, c := range a.calls {
		if c.err != nil {
			log.Warn("not reached before the first request", "store", c.store, "err", c.err.Error())
		}
	}
}
