package bot

import (
	"slices"
	"time"
)

// InMemoryHistory implements the history in Redis in Go, with times from the caller, for
// simulations and for replays of access logs. A test compares it with the scripts. It is not safe
// for concurrent use, and its memory grows with the number of clients.
type InMemoryHistory struct{ groups map[string]*groupHistory }

type groupHistory struct {
	requests      []time.Time
	lastCookie    time.Time // time of the last request with a cookie
	bySession     map[string][]time.Time
	sessionStarts []time.Time
}

// NewInMemoryHistory returns an empty history.
func NewInMemoryHistory() *InMemoryHistory { return &InMemoryHistory{map[string]*groupHistory{}} }

// Observe returns the history of a client at a time, as Enqueue and Resolve do, but without
// Replays. With count Observe also counts the request. The times of a client group must not
// decrease between calls. CPU and memory only: a pass over at most 512 times per list and 256
// sessions. Observe never fails.
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

// SessionStarted records that a session started, as EnqueueSessionStart does; unlike there, each
// call for the same session counts. CPU and memory only; SessionStarted never fails.
func (m *InMemoryHistory) SessionStarted(c Client, session string, at time.Time) {
	g := m.group(c)
	g.bySession[session] = append(g.bySession[session], at)
	g.sessionStarts = append(g.sessionStarts, at)
	g.sessionStarts = g.sessionStarts[max(0, len(g.sessionStarts)-maxSessions):]
}

// group returns the history of a client group.
func (m *InMemoryHistory) group(c Client) *groupHistory {
	g := m.groups[c.groupKey()]
	if g == nil {
		g = &groupHistory{bySession: map[string][]time.Time{}}
		m.groups[c.groupKey()] = g
	}
	return g
}

// lastTimes returns the last maxRequestTimes times.
func lastTimes(times []time.Time) []time.Time { return times[max(0, len(times)-maxRequestTimes):] }

// countRequests counts the times within both windows before now.
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
