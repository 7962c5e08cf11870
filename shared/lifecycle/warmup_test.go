package lifecycle

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWarmUp_DialsInParallelWithinTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, start := NewWarmUp(), time.Now()
		met := make(chan struct{})
		w.Dial("one", func(context.Context) error { met <- struct{}{}; return nil })
		w.Dial("other", func(context.Context) error { <-met; return nil })
		w.Dial("refusing", func(context.Context) error { return errors.New("no") })
		w.Dial("hanging", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		var log bytes.Buffer
		w.Wait(slog.New(slog.NewTextHandler(&log, nil)))
		if took := time.Since(start); took != warmUpTimeout {
			t.Errorf("Wait returned after %v, want %v", took, warmUpTimeout)
		}
		for _, want := range []string{"store=refusing err=no", `store=hanging err="context deadline exceeded"`} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("log is %s, want %s in it", &log, want)
			}
		}
		if n := strings.Count(log.String(), "\n"); n != 2 {
			t.Errorf("%d log records, want 2: %s", n, &log)
		}
	})
}

func TestWarmUp_DoneWithLastDial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, start := NewWarmUp(), time.Now()
		w.Dial("a store", func(context.Context) error { time.Sleep(20 * time.Millisecond); return nil })
		go w.Wait(slog.New(slog.DiscardHandler))
		<-w.Done()
		if got, want := time.Since(start), 20*time.Millisecond; got != want {
			t.Errorf("Done after %v, want %v", got, want)
		}
	})
}

func TestWarmUp_HangingDialDoesNotBlockRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, start := NewWarmUp(), time.Now()
		release := make(chan struct{})
		w.Dial("ignores its context", func(context.Context) error { <-release; return nil })
		go w.Wait(slog.New(slog.DiscardHandler))
		<-w.Done()
		if got := time.Since(start); got != warmUpTimeout {
			t.Errorf("Done after %v, want %v", got, warmUpTimeout)
		}
		close(release)
	})
}

func TestWarmUp_NilDialsNothing(t *testing.T) {
	t.Parallel()
	var w *WarmUp
	w.Dial("a store", func(context.Context) error { t.Error("dialled"); return nil })
}
