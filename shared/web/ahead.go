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
type ahead struct{ calls []aheadCall }

type aheadCall struct {
	store string
	dial  func(context.Context) error
}

type aheadKey struct{}

// Ahead is for a function that opens with ctx: where it is opened because its process is about to listen, dial is called
// first, beside the others. So the first requests do not spend on a new connection what they have for an answer. In any
// other process nothing is called.
func Ahead(ctx context.Context, store string, dial func(context.Context) error) {
	if a, listens := ctx.Value(aheadKey{}).(*ahead); listens {
		a.calls = append(a.calls, aheadCall{store, dial})
	}
}

// run makes all calls and waits for them. A store that is away is no reason not to start: it may be back before the first
// guest is there, and each request knows what it does without.
func (a *ahead) run(within time.Duration, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	var all sync.WaitGroup
	for _, c := range a.calls {
		all.Go(func() {
			if err := c.dial(ctx); err != nil {
				log.Warn("not reached before listening", "store", c.store, "err", err.Error())
			}
		})
	}
	all.Wait()
}
