package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// restoreTimeout bounds the restoring of switches after a run, also of a run that was interrupted.
const restoreTimeout = 10 * time.Second

// runTour runs all chapters against the server at url and writes the report to out. A failed step
// ends its chapter; the next chapter starts with a new guest. The error has the number of failed
// steps. runTour restores the switches after each chapter, also when ctx ends.
func runTour(ctx context.Context, url string, out io.Writer) error {
	t := &tour{ctx: ctx, url: strings.TrimRight(url, "/"), out: out, http: &http.Client{Timeout: 30 * time.Second}}
	if err := t.save(); err != nil {
		return fmt.Errorf("no development server answers at %s (start one with ./dev run): %w", t.url, err)
	}
	defer t.restore()
	for _, c := range []struct {
		title string
		steps func(*tour)
	}{
		{"A guest's journey", journey}, {"Faults of upstreams", faults}, {"Limits and campaign mode", limits},
		{"A tenant is suspended and reinstated", suspension}, {"A robot's challenge", challenge},
	} {
		if ctx.Err() != nil {
			break
		}
		fmt.Fprintf(out, "\n== %s\n", c.title)
		t.chapter(c.steps)
		t.restore()
	}
	fmt.Fprintf(out, "\n%d steps, %d failed\n", t.steps, t.failed)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case t.failed > 0:
		return fmt.Errorf("%d of %d steps failed", t.failed, t.steps)
	}
	return nil
}

// tour is the state of a run. Not safe for concurrent use.
type tour struct {
	ctx    context.Context
	url    string
	out    io.Writer
	http   *http.Client
	cookie string // of the current guest
	quiet  bool   // suppresses the output of repeated requests

	steps, failed int
	saved         []func(*tour) error // restore the changed switches
	flags         map[string]any      // as they were before the tour
	behaviours    map[string]any      // of the upstreams, as they were before the tour
}

// stop is the panic value that ends a chapter; chapter recovers it.
type stop struct{}

// chapter runs the steps of a chapter as a new guest.
func (t *tour) chapter(steps func(*tour)) {
	defer func() {
		if v := recover(); v != nil {
			if _, ok := v.(stop); !ok {
				panic(v)
			}
			fmt.Fprintln(t.out, "   the rest of this chapter is left out")
		}
	}()
	t.cookie = ""
	steps(t)
}

// step prints a step and runs it. do sends the requests and returns a summary of the responses; its
// error describes the difference to the expected responses.
func (t *tour) step(title, expect string, do func() (string, error)) {
	t.steps++
	fmt.Fprintf(t.out, "\n%2d %s\n", t.steps, title)
	began := time.Now()
	got, err := do()
	took := time.Since(began).Round(time.Millisecond)
	fmt.Fprintf(t.out, "   expect  %s\n", expect)
	if got != "" {
		fmt.Fprintf(t.out, "   got     %s\n", got)
	}
	if err != nil {
		t.failed++
		fmt.Fprintf(t.out, "   FAILED  %v (%v)\n", err, took)
		panic(stop{})
	}
	fmt.Fprintf(t.out, "   ok      %v\n", took)
}

// poll repeats do every 100 ms until it succeeds, for at most limit. It prints the requests of the
// first attempt only.
func (t *tour) poll(limit time.Duration, do func() (string, error)) (got string, err error) {
	ctx, cancel := context.WithTimeout(t.ctx, limit)
	defer cancel()
	defer func() { t.quiet = false }()
	for {
		if got, err = do(); err == nil {
			return got, nil
		}
		t.quiet = true
		select {
		case <-ctx.Done():
			return got, fmt.Errorf("%w, after %v", err, limit)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
