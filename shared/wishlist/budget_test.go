package wishlist

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// watch is the pool, and remembers until when each batch may take.
type watch struct {
	Sender
	until []time.Time
	ended []bool // whether the guest had hung up
}

func (w *watch) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(24 * time.Hour)
	}
	w.until, w.ended = append(w.until, deadline), append(w.ended, errors.Is(ctx.Err(), context.Canceled))
	return w.Sender.SendBatch(ctx, batch)
}

func TestNoStepOutlivesItsRequest(t *testing.T) {
	d := newDesk(t)
	d.add(wish(1))
	for name, c := range map[string]struct {
		do    func(context.Context) error
		steps int
	}{
		"what is there": {func(ctx context.Context) error { _, err := d.Add(ctx, d.session, wish(1)); return err }, 2},
		"what is new":   {func(ctx context.Context) error { _, err := d.Add(ctx, d.session, wish(2)); return err }, 1},
		"a removal": {func(ctx context.Context) error {
			_, err := d.Remove(ctx, d.session, wish(2).PropertyID)
			return err
		}, 1},
		"a copy that was lost": {func(ctx context.Context) error {
			change, err := d.Add(ctx, d.session, wish(3))
			if err != nil {
				return err
			}
			d.rdb.HDel(ctx, d.keys.Session(d.session), "wishlistVersion")
			pipe := d.rdb.Pipeline()
			d.Copy(ctx, pipe, d.session, change)
			pipe.Exec(ctx)
			return d.Mend(ctx, d.session, change)
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := &watch{Sender: d.db}
			d.Room.db = w
			ctx, cancel := context.WithTimeout(t.Context(), mutateWithin)
			defer cancel()
			if err := c.do(ctx); err != nil {
				t.Fatal(err)
			}
			deadline, _ := ctx.Deadline()
			if len(w.until) != c.steps {
				t.Errorf("%d steps, want %d", len(w.until), c.steps)
			}
			for n, until := range w.until {
				if left := deadline.Sub(until); left < leaving-10*time.Millisecond { // two readings of the clock
					t.Errorf("step %d leaves %v for the answer", n, left)
				}
			}
		})
	}
}

func TestAStepIsBoundedThoughTheRequestIsNot(t *testing.T) {
	d := newDesk(t)
	w := &watch{Sender: d.db}
	d.Room.db = w
	if _, err := d.Add(t.Context(), d.session, wish(1)); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(w.until[0]); left > mutateWithin {
		t.Errorf("%v", left)
	}
}

func TestAGuestWhoHungUpStopsNoMutation(t *testing.T) {
	d := newDesk(t)
	w := &watch{Sender: d.db}
	d.Room.db = w
	ctx, leave := context.WithTimeout(t.Context(), mutateWithin)
	leave()
	if _, err := d.Add(ctx, d.session, wish(1)); err != nil || w.ended[0] {
		t.Errorf("%v, hung up %t", err, w.ended[0])
	}
}
