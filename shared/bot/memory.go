package bot

import (
	"slices"
	"time"
)

// Memory is what Redis keeps of clients, in plain Go and by a clock that is handed in: for time that is simulated, as
// where an access log is replayed or a guest's hour is played through. A test holds it to the scripts. Not safe for
// concurrent use; it grows with the number of clients.
type Memory struct{ groups map[string]*remembered }

type remembered struct {
	requests []time.Time
	cookie   time.Time // of the last request that had one
	own      map[string][]time.Time
	sessions []time.Time
}

// NewMemory makes an empty one.
func NewMemory() *Memory { return &Memory{map[string]*remembered{}} }

// Observe is Peek and Settle at a time, of what Redis would know.
func (m *Memory) Observe(c Client, at time.Time, count bool) Seen {
	g := m.group(c)
	n := Cadence{Cookie: c.Session != "", SinceCookie: -time.Millisecond}
	if since := at.Sub(g.cookie); since < Long { // the zero time is long ago
		n.SinceCookie = max(since, 0)
	}
	if count {
		g.requests = late(append(g.requests, at))
		if n.Cookie {
			g.cookie = at
			g.own[c.Session] = late(append(g.own[c.Session], at))
		}
	}
	n.Group = pace(g.requests, at)
	if n.Cookie {
		n.Own = pace(g.own[c.Session], at)
	}
	sessions := 0
	for _, began := range g.sessions {
		if at.Sub(began) <= sessionsLife {
			sessions++
		}
	}
	return Seen{Cadence: n, Sessions: sessions}
}

// Began notes that a session began at a client.
func (m *Memory) Began(c Client, session string, at time.Time) {
	g := m.group(c)
	g.own[session] = append(g.own[session], at)
	g.sessions = append(g.sessions, at)
	g.sessions = g.sessions[max(0, len(g.sessions)-sessionsKept):]
}

func (m *Memory) group(c Client) *remembered {
	g := m.groups[c.group()]
	if g == nil {
		g = &remembered{own: map[string][]time.Time{}}
		m.groups[c.group()] = g
	}
	return g
}

// late are the last times that are kept.
func late(times []time.Time) []time.Time { return times[max(0, len(times)-timesKept):] }

func pace(times []time.Time, now time.Time) (p Pace) {
	for _, at := range slices.Backward(times) {
		ago := now.Sub(at)
		if ago >= Long {
			break
		}
		p.Minute++
		if ago < Short {
			p.Burst++
		}
	}
	return p
}
