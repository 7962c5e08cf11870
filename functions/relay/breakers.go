package relay

import (
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

const (
	breakerThreshold = 5                      // consecutive outages of a topic that open its breaker
	openDuration     = 500 * time.Millisecond // an open breaker sends nothing for this long; then it admits one request
)

// errBreakerOpen is the result of a request that an open breaker did not send.
var errBreakerOpen = errors.New("relay: the topic's circuit breaker is open")

// breakers holds one circuit breaker per topic, so that a run does not send every row to a broker
// that is unavailable. Breakers are per topic because the right to publish is. They live as long as
// a run. Safe for concurrent use.
type breakers struct {
	mu     sync.Mutex
	topics map[string]*gobreaker.CircuitBreaker[struct{}]
}

func newBreakers() *breakers {
	return &breakers{topics: map[string]*gobreaker.CircuitBreaker[struct{}]{}}
}

func (s *breakers) forTopic(topic string) *gobreaker.CircuitBreaker[struct{}] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.topics[topic] == nil {
		s.topics[topic] = gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
			Name:        topic,
			Timeout:     openDuration,
			ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= breakerThreshold },
			// A refusal is an answer: the broker is there.
			IsSuccessful: func(err error) bool { return err == nil || isPermanent(err) },
		})
	}
	return s.topics[topic]
}

// do runs publish, one request to the topic, and returns its error. While the topic's breaker is
// open, or half open with a request under way, do returns errBreakerOpen without running publish.
func (s *breakers) do(topic string, publish func() error) error {
	_, err := s.forTopic(topic).Execute(func() (struct{}, error) { return struct{}{}, publish() })
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return errBreakerOpen
	}
	return err
}

// allClosed reports whether the breaker of every topic is closed.
func (s *breakers) allClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.topics {
		if b.State() != gobreaker.StateClosed {
			return false
		}
	}
	return true
}
