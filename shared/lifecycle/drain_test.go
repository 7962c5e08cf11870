package lifecycle

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestDrain_EndsWhenIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r Requests
		r.Begin()
		go func() {
			time.Sleep(time.Second)
			r.End()
		}()
		start := time.Now()
		r.Drain(drainTimeout)
		if took := time.Since(start); took < time.Second || took > time.Second+200*time.Millisecond {
			t.Errorf("Drain took %v, want a tenth of a second more than the request's 1s", took)
		}
	})
}

func TestDrain_StopsAtTimeoutAndRejectsRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r Requests
		r.Begin()
		start := time.Now()
		r.Drain(drainTimeout)
		if took := time.Since(start); took < drainTimeout || took > drainTimeout+drainPollInterval {
			t.Errorf("Drain took %v, want %v", took, drainTimeout)
		}
		if !r.Draining() || !r.Rejecting() {
			t.Errorf("draining %v, rejecting %v, want both", r.Draining(), r.Rejecting())
		}
	})
}
