package relay

import (
	"sync"
	"time"
)

const (
	tolerated     = 5                      // requests in a row without an answer, before a topic is left alone
	shortestPause = 100 * time.Millisecond // then, and twice as long after each further one
	longestPause  = 5 * time.Second
)

// sky knows of which topics the broker has no answer at present, so that a broker that is away is not asked for every
// row. It goes by topic because the right to publish does, and so may the trouble.
type sky struct {
	mu     sync.Mutex
	topics map[string]*weather
}

type weather struct {
	failures int // in a row
	pause    time.Duration
	until    time.Time // nothing is sent before; zero: fine
	turn     int       // rises with each change: what was sent before one says nothing about what came after
}

func newSky() *sky { return &sky{topics: map[string]*weather{}} }

func (s *sky) of(topic string) *weather {
	w := s.topics[topic]
	if w == nil {
		w = &weather{}
		s.topics[topic] = w
	}
	return w
}

// allow reports whether a request may be sent, and the turn to report its end with. After a pause one may, and the
// others wait for what becomes of it.
func (s *sky) allow(topic string) (turn int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.of(topic)
	if w.until.IsZero() {
		return w.turn, true
	}
	now := time.Now()
	if now.Before(w.until) {
		return 0, false
	}
	w.turn++
	w.until = now.Add(requestWithin + time.Second)
	return w.turn, true
}

// answered is told that the broker had an answer, be it a refusal.
func (s *sky) answered(topic string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.of(topic)
	if !w.until.IsZero() {
		w.turn++
	}
	w.failures, w.pause, w.until = 0, 0, time.Time{}
}

// failed is told of a request without an answer.
func (s *sky) failed(topic string, turn int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.of(topic)
	if turn != w.turn {
		return
	}
	if w.failures++; w.failures < tolerated {
		return
	}
	w.pause = min(max(2*w.pause, shortestPause), longestPause)
	w.until = time.Now().Add(w.pause)
	w.turn++
}

// clear reports that no topic is left alone.
func (s *sky) clear() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.topics {
		if !w.until.IsZero() {
			return false
		}
	}
	return true
}
