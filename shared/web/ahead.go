package web

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// aheadWithin is how long a process waits for all its stores together before it listens. Nobody is sent to it until then;
// a store that takes longer is found, or not, by requests.
const aheadWithin = 500 * time.Millisecond

// ahead is what a function wants done before its process listens.
type ahead struct {
	within context.Context
	calls  []*aheadCall
	all    sync.WaitGroup
}

type aheadCall struct {
	store string
	err   error
}

type aheadKey struct{}

// Ahead is for a function that opens with ctx: where it is opened because its process is about to listen, dial is called at
// once, beside the rest of the opening, and waited for. So the first requests do not spend on a new connection what they
// have for an answer. In any other process nothing is called. Not safe for concurrent use.
func Ahead(ctx context.Context, store string, dial func(context.Context) error) {
	if a, listens := ctx.Value(aheadKey{}).(*ahead); listens {
		c := &aheadCall{store: store}
		a.calls = append(a.calls, c)
		a.all.Go(func() { c.err = dial(a.within) })
	}
}

// wait returns when all calls have. A store that is away is no reason not to start: it may be back before the first guest
// is there, and each request knows what it does without.
func (a *ahead) wait(log *slog.Logger) {
	a.all.Wait()
	for _, c := range a.calls {
		if c.err != nil {
			log.Warn("not reached before listening", "store", c.store, "err", c.err.Error())
		}
	}
}
