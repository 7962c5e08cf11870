package relay

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestBreakers_OpenPerTopicAndAdmitOneRequestAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newBreakers()
		outage := status.Error(codes.Unavailable, "no answer")
		requests := 0
		send := func(topic string, err error) error {
			return s.do(topic, func() error { requests++; return err })
		}
		for range breakerThreshold {
			if err := send("a", outage); !errors.Is(err, outage) {
				t.Fatalf("got %v, want the broker's error", err)
			}
		}
		if err := send("a", nil); !errors.Is(err, errBreakerOpen) || s.allClosed() {
			t.Errorf("after %d outages: got %v, all closed %t, want an open breaker", breakerThreshold, err, s.allClosed())
		}
		if err := send("b", nil); err != nil {
			t.Errorf("another topic: got %v, want no error", err)
		}
		time.Sleep(openDuration + 1)
		if err := send("a", outage); !errors.Is(err, outage) {
			t.Errorf("half open: got %v, want the broker's error", err)
		}
		if err := send("a", nil); !errors.Is(err, errBreakerOpen) {
			t.Errorf("after the failed probe: got %v, want an open breaker", err)
		}
		time.Sleep(openDuration + 1)
		err := s.do("a", func() error {
			if err := send("a", nil); !errors.Is(err, errBreakerOpen) {
				t.Errorf("beside the probe: got %v, want an open breaker", err)
			}
			return nil
		})
		if err != nil || !s.allClosed() {
			t.Errorf("after recovery: got %v, all closed %t, want closed breakers", err, s.allClosed())
		}
		if want := breakerThreshold + 2; requests != want {
			t.Errorf("got %d requests, want %d", requests, want)
		}
	})
}

func TestBreakers_CountRefusalAsAnswer(t *testing.T) {
	s := newBreakers()
	for range 2 * breakerThreshold {
		s.do("a", func() error { return status.Error(codes.InvalidArgument, "refused") })
	}
	if !s.allClosed() {
		t.Error("refusals opened the breaker")
	}
}
