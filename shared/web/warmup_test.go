package web

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestWarmUp_DialsInParallelWithinTimeout(t *testing.T) {
	within, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	stores := &warmUpGroup{ctx: within, cancel: cancel}
	ctx := context.WithValue(t.Context(), warmUpKey{}, stores)
	met := make(chan struct{})
	WarmUp(ctx, "one", func(context.Context) error { met <- struct{}{}; return nil })
	WarmUp(ctx, "other", func(context.Context) error { <-met; return nil })
	WarmUp(ctx, "refusing", func(context.Context) error { return errors.New("no") })
	WarmUp(ctx, "hanging", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	var log bytes.Buffer
	stores.wait(slog.New(slog.NewTextHandler(&log, nil)))
	for _, said := range []string{"store=refusing err=no", `store=hanging err="context deadline exceeded"`} {
		if !strings.Contains(log.String(), said) {
			t.Errorf("not said: %s: %s", said, &log)
		}
	}
	if n := strings.Count(log.String(), "\n"); n != 2 {
		t.Errorf("%d records: %s", n, &log)
	}
}

func TestWarmUp_HangingDialDoesNotBlockRequests(t *testing.T) {
	f := newTestFunction(t, "GET /x", okHandler)
	within, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	f.warmUp = &warmUpGroup{ctx: within, cancel: cancel}
	answered, settled := make(chan struct{}), make(chan struct{})
	WarmUp(context.WithValue(t.Context(), warmUpKey{}, f.warmUp), "deaf", func(context.Context) error { <-answered; return nil })
	go func() {
		f.warmUp.wait(slog.New(slog.DiscardHandler))
		close(settled)
	}()
	w := httptest.NewRecorder()
	f.ServeHTTP(w, httptest.NewRequest("GET", "/x", nil))
	close(answered)
	<-settled
	if w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestWarmUp_SkippedInOtherProcesses(t *testing.T) {
	f := newTestFunction(t, "GET /x", okHandler)
	f.open = func(ctx context.Context) (Handler, error) {
		WarmUp(ctx, "a store", func(context.Context) error { t.Error("reached"); return nil })
		return okHandler, nil
	}
	if err := f.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// serveWithWarmUp is a function that reaches its store, or not, once it listens, and serves one request.
func serveWithWarmUp() {
	listens := make(chan struct{})
	door := Register("Early", "GET /x", func(ctx context.Context) (Handler, error) {
		WarmUp(ctx, "a store", func(context.Context) error {
			<-listens
			os.Stderr.WriteString("reached\n")
			return errors.New("it said no")
		})
		return func(http.ResponseWriter, *http.Request) error {
			os.Stderr.WriteString("begins\n")
			return nil
		}, nil
	})
	os.Stderr.WriteString("listens\n")
	close(listens)
	door(httptest.NewRecorder(), httptest.NewRequest("GET", "/x", nil))
}

func TestWarmUp_RequestsWaitForDialButListenerDoesNot(t *testing.T) {
	for target, want := range map[string]string{"Early": "listens\nreached\nbegins\n", "Other": "listens\n"} {
		cmd := childCommand(t, "WEB_TEST_CHILD=ahead", "FUNCTION_TARGET="+target)
		var said bytes.Buffer
		cmd.Stderr = &said
		records, err := cmd.Output()
		if _, ended := errors.AsType[*exec.ExitError](err); ended || said.String() != want {
			t.Errorf("%s: %v, %q", target, err, &said)
		}
		if told := strings.Contains(string(records), "it said no"); told != (target == "Early") {
			t.Errorf("%s: %s", target, records)
		}
	}
}
