package relay

import (
	"sync"
	"time"
)

const (
	breakerThreshold = 5                      // requests in a row without an answer, before a topic is left alone
	minOpenDuration  = 100 * time.Millisecond // then, and twice as long after each further one
	maxOpenDuration  = 5 * time.Second
)

// breakers knows of which topics the broker has no answer at present, so that a broker that is away is not asked for every
// row. It goes by topic because the right to publish does, and so may the trouble.
type breakers struct {
	mu     sync.Mutex
	topics map[string]*breaker
}

type breaker struct {
	failures     int // in a row
	openDuration time.Duration
	openUntil    time.Time // nothing is sent before; zero: fine
	generation   int       // rises with each change: what was sent before one says nothing about what came after
}

func newBreakers() *breakers { return &breakers{topics: map[string]*breaker{}} }

func (s *breakers) forTopic(topic string) *breaker {
	w := s.topics[topic]
	if w == nil {
		w = &breaker{}
		s.topics[topic] = w
	}
	return w
}

// allow reports whether a request may be sent, and the turn to report its end with. After a pause one may, and the
// others wait for what becomes of it.
func (s *breakers) allow(topic string) (turn int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.forTopic(topic)
	if w.openUntil.IsZero() {
		return w.generation, true
	}
	now := time.Now()
	if now.Before(w.openUntil) {
		return 0, false
	}
	w.generation++
	w.openUntil = now.Add(requestTimeout + time.Second)
	return w.generation, true
}

// recordSuccess is told that the broker had an answer, be it a refusal.
func (s *breakers) recordSuccess(topic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.forTopic(topic)
	if !w.openUntil.IsZero() {
		w.generation++
	}
	w.failures, w.openDuration, w.openUntil = 0, 0, time.Time{}
}

// recordFailure is told of a request without an answer.
func (s *breakers) recordFailure(topic string, turn int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.forTopic(topic)
	if turn != w.generation {
		return
	}
	if w.failures++; w.failures < breakerThreshold {
		return
	}
	w.openDuration = min(max(2*w.openDuration, minOpenDuration), maxOpenDuration)
	w.openUntil = time.Now().Add(w.openDuration)
	w.generation++
}

// allClosed reports that no topic is left alone.
func (s *breakers) allClosed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.topics {
		if !w.openUntil.IsZero() {
			return false
		}
	}
	return true
}
