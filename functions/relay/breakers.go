package relay

import (
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
)

const (
	breakerThreshold = 5                      // consecutive outages of a topic before the breaker opens
	openDuration     = 500 * time.Millisecond // time without requests; then a single request tries
)

// errBreakerOpen is the error for a request held back by an open breaker.
var errBreakerOpen = errors.New("relay: the topic's circuit breaker is open")

// breakers holds a circuit breaker for each topic, so that a run does not send every row to an
// unavailable broker. The right to publish is granted per topic, so a failure may concern a single
// topic. Breakers live as long as a run. Safe for concurrent use.
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
			// A refusal proves that the broker is available.
			IsSuccessful: func(err error) bool { return err == nil || isPermanent(err) },
		})
	}
	return s.topics[topic]
}

// do runs publish, a request to the topic, and returns the error of publish. While the topic's
// breaker is open, or half open with a request under way, do returns errBreakerOpen without running
// publish.
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
