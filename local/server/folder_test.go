package server

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/local/runfile"
)

func TestWatchParent_EndsWithParent(t *testing.T) {
	t.Parallel()
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pid    int
		change func(state string) error
		want   string
	}{
		"stopped": {os.Getpid(), func(state string) error { return os.Remove(runfile.Path(state)) }, "has stopped"},
		"restarted": {os.Getpid(), func(state string) error {
			if err := runfile.Write(state, runfile.Run{PID: os.Getpid()}); err != nil {
				return err
			}
			// file times may have a resolution of seconds
			return os.Chtimes(runfile.Path(state), time.Time{}, time.Now().Add(time.Second))
		}, "was restarted"},
		"killed": {dead.Process.Pid, func(string) error { return nil }, "was killed"},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			if err := runfile.Write(state, runfile.Run{PID: c.pid}); err != nil {
				t.Fatal(err)
			}
			parent, err := os.Stat(runfile.Path(state))
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			ticks, ended := make(chan time.Time), make(chan error, 1)
			go func() { ended <- watchParent(ctx, state, parent, ticks) }()
			if c.pid == os.Getpid() {
				ticks <- time.Time{}
				// watchParent receives the second tick after it has checked for the first.
				ticks <- time.Time{}
			}
			if err := c.change(state); err != nil {
				t.Fatal(err)
			}
			select {
			case ticks <- time.Time{}:
				err = <-ended
			case err = <-ended:
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestWatchParent_ReturnsNilOnCancel(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := watchParent(ctx, t.TempDir(), nil, nil); err != nil {
		t.Error(err)
	}
}
