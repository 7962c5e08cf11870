package wishlist

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// deadlineRecorder is the pool, and remembers until when each batch may take.
type deadlineRecorder struct {
	BatchSender
	deadlines []time.Time
	canceled  []bool // whether the guest had hung up
}

func (w *deadlineRecorder) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(24 * time.Hour)
	}
	w.deadlines, w.canceled = append(w.deadlines, deadline), append(w.canceled, errors.Is(ctx.Err(), context.Canceled))
	return w.BatchSender.SendBatch(ctx, batch)
}

func TestStoreTimeouts_LeaveTimeForTheResponse(t *testing.T) {
	d := newHarness(t)
	d.add(newAddRequest(1))
	for name, c := range map[string]struct {
		do    func(context.Context) error
		steps int
	}{
		"what is there": {func(ctx context.Context) error { _, err := d.Add(ctx, d.session, newAddRequest(1)); return err }, 2},
		"what is new":   {func(ctx context.Context) error { _, err := d.Add(ctx, d.session, newAddRequest(2)); return err }, 1},
		"a removal": {func(ctx context.Context) error {
			_, err := d.Remove(ctx, d.session, newAddRequest(2).PropertyID)
			return err
		}, 1},
		"a copy that was lost": {func(ctx context.Context) error {
			change, err := d.Add(ctx, d.session, newAddRequest(3))
			if err != nil {
				return err
			}
			d.rdb.HDel(ctx, d.keys.Session(d.session), "wishlistVersion")
			pipe := d.rdb.Pipeline()
			d.EnqueueCopy(ctx, pipe, d.session, change)
			pipe.Exec(ctx)
			return d.RebuildCopy(ctx, d.session, change)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := &deadlineRecorder{BatchSender: d.db}
			d.Store.db = w
			ctx, cancel := context.WithTimeout(t.Context(), mutationTimeout)
			defer cancel()
			if err := c.do(ctx); err != nil {
				t.Fatal(err)
			}
			deadline, _ := ctx.Deadline()
			if len(w.deadlines) != c.steps {
				t.Errorf("%d steps, want %d", len(w.deadlines), c.steps)
			}
			for n, until := range w.deadlines {
				if left := deadline.Sub(until); left < responseReserve-10*time.Millisecond { // two readings of the clock
					t.Errorf("step %d leaves %v for the answer", n, left)
				}
			}
		})
	}
}

func TestStoreTimeouts_ApplyWithoutRequestDeadline(t *testing.T) {
	d := newHarness(t)
	w := &deadlineRecorder{BatchSender: d.db}
	d.Store.db = w
	if _, err := d.Add(t.Context(), d.session, newAddRequest(1)); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(w.deadlines[0]); left > mutationTimeout {
		t.Errorf("%v", left)
	}
}

func TestStoreAdd_IgnoresClientDisconnect(t *testing.T) {
	d := newHarness(t)
	w := &deadlineRecorder{BatchSender: d.db}
	d.Store.db = w
	ctx, leave := context.WithTimeout(t.Context(), mutationTimeout)
	leave()
	if _, err := d.Add(ctx, d.session, newAddRequest(1)); err != nil || w.canceled[0] {
		t.Errorf("%v, hung up %t", err, w.canceled[0])
	}
}
