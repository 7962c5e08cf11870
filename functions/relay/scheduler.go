package relay

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/outbox"
)

// lease is one stay of a worker in a lane.
type lease struct {
	shard  string
	cursor string // where it begins; when it is over, where the next one should

	progressed bool // something was published, charged or dropped
	blocked    bool // something was left because the broker, or Postgres, had no answer
	hasMore    bool // the lane goes on at after
}

// scheduler is what the one who looks knows of the lanes. Only they touch it.
type scheduler struct {
	queue    []lease
	leased   map[string]bool
	backoffs map[string]shardBackoff // lanes in which nothing could be moved of late

	polledAt            time.Time
	pollInterval        time.Duration
	progressed, blocked bool // since the last look
}

type shardBackoff struct {
	delay time.Duration
	until time.Time
}

// isIdle reports that the last look, and the visits that came of it, moved nothing.
func (p *scheduler) isIdle() bool {
	return !p.polledAt.IsZero() && len(p.leased) == 0 && len(p.queue) == 0 && !p.progressed
}

// pollDue asks which lanes have something due, lets those wait that are not waiting or busy already, in an order that is
// another one each time, and returns when to look again.
func (s *run) pollDue(ctx context.Context, p *scheduler) time.Duration {
	if s.options.Once && len(p.queue)+len(p.leased) > 0 {
		return pollBusy // the next look tells whether there is an end
	}
	begun := time.Now()
	ask, cancel := context.WithTimeout(ctx, queryTimeout)
	due, err := outbox.DueShards(ask, s.relay.db, s.relay.now())
	cancel()
	if ctx.Err() == nil {
		s.setPollErr(err)
	}
	if p.blocked = p.blocked || err != nil; p.blocked && !p.progressed {
		p.pollInterval = min(2*p.pollInterval, pollUnavailable)
	} else {
		p.pollInterval = pollIdle
	}
	p.polledAt, p.progressed, p.blocked = time.Now(), false, false
	rand.Shuffle(len(due), func(i, j int) { due[i], due[j] = due[j], due[i] })
	for _, lane := range due {
		waits := slices.ContainsFunc(p.queue, func(v lease) bool { return v.shard == lane })
		if !waits && !p.leased[lane] && !p.polledAt.Before(p.backoffs[lane].until) {
			p.queue = append(p.queue, lease{shard: lane})
		}
	}
	if s.options.Once && len(p.queue) == 0 {
		return 0
	}
	return max(p.pollInterval, pollTimeShare*p.polledAt.Sub(begun))
}

// endLease takes a visit's end in, and reports that it is worth looking again soon.
func (p *scheduler) endLease(v lease, fine bool) (soon bool) {
	delete(p.leased, v.shard)
	p.progressed, p.blocked = p.progressed || v.progressed, p.blocked || v.blocked
	switch {
	case v.hasMore:
		p.queue = append(p.queue, lease{shard: v.shard, cursor: v.cursor}) // behind the others
	case v.progressed:
		delete(p.backoffs, v.shard)
	default:
		most := pollUnavailable
		if !v.blocked { // somebody else has the lane, or all that is in it is held
			most = pollNoProgress
		}
		pause := min(max(2*p.backoffs[v.shard].delay, pollIdle), most)
		p.backoffs[v.shard] = shardBackoff{pause, time.Now().Add(pause)}
	}
	if v.progressed && fine {
		clear(p.backoffs) // what they waited for is back
	}
	return v.progressed
}
