package bot

import (
	"slices"
	"time"
)

// InMemoryHistory is what Redis keeps of clients, in plain Go and by a clock that is handed in: for time that is simulated, as
// where an access log is replayed or a guest's hour is played through. A test holds it to the scripts. Not safe for
// concurrent use; it grows with the number of clients.
type InMemoryHistory struct{ groups map[string]*groupHistory }

type groupHistory struct {
	requests      []time.Time
	lastCookie    time.Time // of the last request that had one
	bySession     map[string][]time.Time
	sessionStarts []time.Time
}

// NewInMemoryHistory makes an empty one.
func NewInMemoryHistory() *InMemoryHistory { return &InMemoryHistory{map[string]*groupHistory{}} }

// Observe is Peek and Settle at a time, of what Redis would know.
func (m *InMemoryHistory) Observe(c Client, at time.Time, count bool) History {
	g := m.group(c)
	n := Cadence{HasCookie: c.Session != "", SinceCookie: -time.Millisecond}
	if since := at.Sub(g.lastCookie); since < LongWindow { // the zero time is long ago
		n.SinceCookie = max(since, 0)
	}
	if count {
		g.requests = lastTimes(append(g.requests, at))
		if n.HasCookie {
			g.lastCookie = at
			g.bySession[c.Session] = lastTimes(append(g.bySession[c.Session], at))
		}
	}
	n.Group = countRequests(g.requests, at)
	if n.HasCookie {
		n.Session = countRequests(g.bySession[c.Session], at)
	}
	sessions := 0
	for _, began := range g.sessionStarts {
		if at.Sub(began) <= sessionsTTL {
			sessions++
		}
	}
	return History{Cadence: n, Sessions: sessions}
}

// SessionStarted notes that a session began at a client.
func (m *InMemoryHistory) SessionStarted(c Client, session string, at time.Time) {
	g := m.group(c)
	g.bySession[session] = append(g.bySession[session], at)
	g.sessionStarts = append(g.sessionStarts, at)
	g.sessionStarts = g.sessionStarts[max(0, len(g.sessionStarts)-maxSessions):]
}

func (m *InMemoryHistory) group(c Client) *groupHistory {
	g := m.groups[c.groupKey()]
	if g == nil {
		g = &groupHistory{bySession: map[string][]time.Time{}}
		m.groups[c.groupKey()] = g
	}
	return g
}

// lastTimes are the last times that are kept.
func lastTimes(times []time.Time) []time.Time { return times[max(0, len(times)-maxRequestTimes):] }

func countRequests(times []time.Time, now time.Time) (p RequestCounts) {
	for _, at := range slices.Backward(times) {
		ago := now.Sub(at)
		if ago >= LongWindow {
			break
		}
		p.Minute++
		if ago < ShortWindow {
			p.Burst++
		}
	}
	return p
}
