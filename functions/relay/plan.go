package relay

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

// visit is one stay of a worker in a lane.
type visit struct {
	lane  string
	after string // where it begins; when it is over, where the next one should

	moved bool // something was published, charged or dropped
	stuck bool // something was left because the broker, or Postgres, had no answer
	more  bool // the lane goes on at after
}

// plan is what the one who looks knows of the lanes. Only they touch it.
type plan struct {
	queue []visit
	busy  map[string]bool
	rest  map[string]rest // lanes in which nothing could be moved of late

	looked       time.Time
	interval     time.Duration
	moved, stuck bool // since the last look
}

type rest struct {
	pause time.Duration
	until time.Time
}

// over reports that the last look, and the visits that came of it, moved nothing.
func (p *plan) over() bool {
	return !p.looked.IsZero() && len(p.busy) == 0 && len(p.queue) == 0 && !p.moved
}

// look asks which lanes have something due, lets those wait that are not waiting or busy already, in an order that is
// another one each time, and returns when to look again.
func (s *shift) look(ctx context.Context, p *plan) time.Duration {
	if s.orders.Once && len(p.queue)+len(p.busy) > 0 {
		return pollAtMost // the next look tells whether there is an end
	}
	begun := time.Now()
	ask, cancel := context.WithTimeout(ctx, askWithin)
	due, err := outbox.Due(ask, s.relay.db, s.relay.now())
	cancel()
	if ctx.Err() == nil {
		s.looked(err)
	}
	if p.stuck = p.stuck || err != nil; p.stuck && !p.moved {
		p.interval = min(2*p.interval, pollGloomy)
	} else {
		p.interval = pollIdle
	}
	p.looked, p.moved, p.stuck = time.Now(), false, false
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	for _, lane := range due {
		waits := slices.ContainsFunc(p.queue, func(v visit) bool { return v.lane == lane })
		if !waits && !p.busy[lane] && !p.looked.Before(p.rest[lane].until) {
			p.queue = append(p.queue, visit{lane: lane})
		}
	}
	if s.orders.Once && len(p.queue) == 0 {
		return 0
	}
	return max(p.interval, pollShare*p.looked.Sub(begun))
}

// finished takes a visit's end in, and reports that it is worth looking again soon.
func (p *plan) finished(v visit, fine bool) (soon bool) {
	delete(p.busy, v.lane)
	p.moved, p.stuck = p.moved || v.moved, p.stuck || v.stuck
	switch {
	case v.more:
		p.queue = append(p.queue, visit{lane: v.lane, after: v.after}) // behind the others
	case v.moved:
		delete(p.rest, v.lane)
	default:
		most := pollGloomy
		if !v.stuck { // somebody else has the lane, or all that is in it is held
			most = pollHeld
		}
		pause := min(max(2*p.rest[v.lane].pause, pollIdle), most)
		p.rest[v.lane] = rest{pause, time.Now().Add(pause)}
	}
	if v.moved && fine {
		clear(p.rest) // what they waited for is back
	}
	return v.moved
}
