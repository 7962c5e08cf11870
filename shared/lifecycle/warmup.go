package lifecycle

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// warmUpTimeout is the time that all warm-up dials of a process have together. After it, requests
// start and dial a slow store themselves.
const warmUpTimeout = 500 * time.Millisecond

// WarmUp dials the stores of a process that is about to listen, so that the first requests do not
// spend their time budget on new connections. A nil WarmUp dials nothing: tests and the development
// server open functions without a warm-up.
type WarmUp struct {
	ctx    context.Context // ends after the last dial or after warmUpTimeout
	cancel context.CancelFunc
	dials  []*dial
	wg     sync.WaitGroup
}

// dial is one call of Dial and its outcome.
type dial struct {
	store string
	err   error // valid after wg.Wait
}

// NewWarmUp returns a WarmUp whose dials must end within 500 ms from now. NewWarmUp dials nothing,
// never fails, and keeps a timer until Wait or for 500 ms.
func NewWarmUp() *WarmUp {
	ctx, cancel := context.WithTimeout(context.Background(), warmUpTimeout)
	return &WarmUp{ctx: ctx, cancel: cancel}
}

// Dial starts connect in a goroutine and returns at once, so that the construction of the function
// continues. The context of connect ends 500 ms after NewWarmUp; a connect may ignore the context
// and run on. Wait logs an error of connect with the name of the store; the error has no further
// effect. A panic of connect ends the process. On a nil WarmUp, Dial does nothing. Not safe for
// concurrent use; do not call Dial after Wait.
func (w *WarmUp) Dial(store string, connect func(context.Context) error) {
	if w == nil {
		return
	}
	d := &dial{store: store}
	w.dials = append(w.dials, d)
	w.wg.Go(func() { d.err = connect(w.ctx) })
}

// Done is closed when Wait has seen the end of all dials, or 500 ms after NewWarmUp, whichever
// comes first; without a call of Wait always after 500 ms. Requests wait for Done. Safe for
// concurrent use. Done of a nil WarmUp panics.
func (w *WarmUp) Done() <-chan struct{} { return w.ctx.Done() }

// Wait waits for all dials, logs a warning for each failed dial and closes Done. Wait has no time
// limit: the dials should end with the context, 500 ms after NewWarmUp. An unreachable store does
// not stop the process: the store may be back before the first request, and every handler can
// answer without the store, if only with a problem. Call Wait once, after the last Dial. Wait of a
// nil WarmUp panics.
func (w *WarmUp) Wait(log *slog.Logger) {
	w.wg.Wait()
	defer w.cancel()
	for _, d := range w.dials {
		if d.err != nil {
			log.Warn("not reached before the first request", "store", d.store, "err", d.err.Error())
		}
	}
}
