package wishlist

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
)

// deadlineRecorder is a pool that records the deadline of each batch.
type deadlineRecorder struct {
	BatchSender
	deadlines []time.Time
	canceled  []bool // the context was canceled
}

func (r *deadlineRecorder) SendBatch(ctx context.Context, batch *pgx.Batch) pgx.BatchResults {
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(24 * time.Hour)
	}
	r.deadlines, r.canceled = append(r.deadlines, deadline), append(r.canceled, errors.Is(ctx.Err(), context.Canceled))
	return r.BatchSender.SendBatch(ctx, batch)
}

// recordDeadlines puts a recorder between the store and its pool.
func (h *harness) recordDeadlines() *deadlineRecorder {
	r := &deadlineRecorder{BatchSender: h.db}
	h.Store.db = r
	return r
}

// Serial, because the real deadlines of requests apply: each case has mutationTimeout.
func TestStoreTimeouts_LeaveTimeForTheResponse(t *testing.T) {
	h := newHarness(t)
	h.add(newAddRequest(1))
	for _, c := range []struct { // the cases build on each other
		name  string
		do    func(context.Context) error
		steps int
	}{
		{"existing item", func(ctx context.Context) error {
			_, err := h.Add(ctx, h.session, newAddRequest(1))
			return err
		}, 2},
		{"new item", func(ctx context.Context) error {
			_, err := h.Add(ctx, h.session, newAddRequest(2))
			return err
		}, 1},
		{"removal", func(ctx context.Context) error {
			_, err := h.Remove(ctx, h.session, newAddRequest(2).PropertyID)
			return err
		}, 1},
		{"lost copy", func(ctx context.Context) error {
			change, err := h.Add(ctx, h.session, newAddRequest(3))
			if err != nil {
				return err
			}
			h.rdb.HDel(ctx, h.keys.Session(h.session), "wishlistVersion")
			h.exec(func(pipe redis.Pipeliner) { h.EnqueueCopy(ctx, pipe, h.session, change) })
			return h.RebuildCopy(ctx, h.session, change)
		}, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			recorder := h.recordDeadlines()
			ctx, cancel := context.WithTimeout(t.Context(), mutationTimeout)
			defer cancel()
			if err := c.do(ctx); err != nil {
				t.Fatal(err)
			}
			deadline, _ := ctx.Deadline()
			if got := len(recorder.deadlines); got != c.steps {
				t.Errorf("%d steps, want %d", got, c.steps)
			}
			const tolerance = 10 * time.Millisecond // between two readings of the clock
			for n, end := range recorder.deadlines {
				if left := deadline.Sub(end); left < responseReserve-tolerance {
					t.Errorf("step %d leaves %v for the response, want %v", n, left, responseReserve)
				}
			}
		})
	}
}

func TestStoreTimeouts_ApplyWithoutRequestDeadline(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	recorder := h.recordDeadlines()
	if _, err := h.Add(t.Context(), h.session, newAddRequest(1)); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(recorder.deadlines[0]); left > mutationTimeout {
		t.Errorf("the deadline is in %v, want at most %v", left, mutationTimeout)
	}
}

func TestStoreAdd_IgnoresClientDisconnect(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	recorder := h.recordDeadlines()
	ctx, hangUp := context.WithTimeout(t.Context(), mutationTimeout)
	hangUp()
	if _, err := h.Add(ctx, h.session, newAddRequest(1)); err != nil || recorder.canceled[0] {
		t.Errorf("error %v, context canceled %t; want neither", err, recorder.canceled[0])
	}
}
