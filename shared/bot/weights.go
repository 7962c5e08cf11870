package bot

import (
	"strconv"
	"time"
)

// Weights and thresholds of docs/spec/limits.md#bot-detection. Decision 27 explains the values that
// the specification leaves open.
const (
	fastWeight         = 0.3  // of a fast client group; alone no reason for a challenge
	singleClientWeight = 0.45 // of fast requests that certainly come from one client

	burstLimit     = 12  // requests within ShortWindow from which a pace is fast
	minuteLimit    = 120 // requests within LongWindow above which a pace is fast
	campaignFactor = 4   // multiplies both limits in campaign mode while no request has a cookie

	maxCollisionWeight   = 0.25
	minCollisionSessions = 50  // sessions of a client group in 24 hours without a weight
	maxCollisionSessions = 250 // sessions with the largest weight
	replayWeight         = 0.05
	// with fastWeight still human: other guests have the replaying client's phone model
	maxReplayWeight = 0.1
)

// The time windows of cadence.
const (
	ShortWindow = 2 * time.Second
	LongWindow  = time.Minute
)

// weigh returns the weight of a cadence and the request count behind it.
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

// fast reports whether the counts exceed factor times the pace that a person's pages need.
func (n RequestCounts) fast(factor int) bool {
	return n.Burst >= burstLimit*factor || n.Minute > minuteLimit*factor
}

// cookieless reports whether the group is fast and no request in the exceeded window had a cookie.
// A group without cookies is a client that never returns its cookie; a cookie among the requests
// shows several guests.
func (c Cadence) cookieless(campaign bool) bool {
	factor := 1
	if campaign {
		factor = campaignFactor
	}
	noCookie := func(window time.Duration) bool { return !c.HasCookie && (c.SinceCookie < 0 || c.SinceCookie >= window) }
	return c.Group.Burst >= burstLimit*factor && noCookie(ShortWindow) || c.Group.Minute > minuteLimit*factor && noCookie(LongWindow)
}

// detail formats the count of the exceeded window.
func (n RequestCounts) detail() string {
	if n.Burst >= burstLimit {
		return strconv.Itoa(n.Burst) + " reqs/2s"
	}
	return strconv.Itoa(n.Minute) + " reqs/60s"
}

// collisionWeight grows linearly between minCollisionSessions and maxCollisionSessions.
func collisionWeight(sessions int) float64 {
	share := float64(sessions-minCollisionSessions) / (maxCollisionSessions - minCollisionSessions)
	return maxCollisionWeight * max(0, min(share, 1))
}
