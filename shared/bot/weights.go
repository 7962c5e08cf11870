package bot

import (
	"strconv"
	"time"
)

// Weights and bounds of docs/spec/limits.md#bot-detection; decision 27 says why where that leaves it open.
const (
	fastWeight         = 0.3  // challenges nobody by itself
	singleClientWeight = 0.45 // the same, of what is plainly one client

	burstLimit     = 12  // this many within Short are fast
	minuteLimit    = 120 // more than this many within Long
	campaignFactor = 4   // times as many while none has a cookie, in campaign mode

	maxCollisionWeight   = 0.25
	minCollisionSessions = 50  // sessions of a client group in a day that mean nothing
	maxCollisionSessions = 250 // that weigh the most
	replayWeight         = 0.05
	maxReplayWeight      = 0.1 // with fastWeight still human: whoever has the thief's model of phone is no thief
)

// ShortWindow and Long are the windows of cadence.
const (
	ShortWindow = 2 * time.Second
	LongWindow  = time.Minute
)

// weigh is how much a cadence weighs, and the requests that it does for.
func (c Cadence) weigh(campaign bool) (weight float64, detail string) {
	switch {
	case !c.Group.fast(1) && !c.Session.fast(1):
		return 0, ""
	case c.Session.fast(1):
		return singleClientWeight, c.Session.detail()
	case c.cookieless(campaign):
		return singleClientWeight, c.Group.detail()
	default:
		return fastWeight, c.Group.detail()
	}
}

// fast says whether a pace is more than a person's page needs, or so many times as much.
func (p RequestCounts) fast(times int) bool {
	return p.Burst >= burstLimit*times || p.Minute > minuteLimit*times
}

// cookieless says whether the group is fast and none of the requests that make it so had a cookie: a client that never
// gives back its cookie. One that does among many that do not is a sign of several guests.
func (c Cadence) cookieless(campaign bool) bool {
	times := 1
	if campaign {
		times = campaignFactor
	}
	without := func(long time.Duration) bool { return !c.HasCookie && (c.SinceCookie < 0 || c.SinceCookie >= long) }
	return c.Group.Burst >= burstLimit*times && without(ShortWindow) || c.Group.Minute > minuteLimit*times && without(LongWindow)
}

func (p RequestCounts) detail() string {
	if p.Burst >= burstLimit {
		return strconv.Itoa(p.Burst) + " reqs/2s"
	}
	return strconv.Itoa(p.Minute) + " reqs/60s"
}

// collisionWeight grows evenly between the two numbers of sessions.
func collisionWeight(sessions int) float64 {
	share := float64(sessions-minCollisionSessions) / (maxCollisionSessions - minCollisionSessions)
	return maxCollisionWeight * max(0, min(share, 1))
}
