package ratelimit

import "time"

// rate is how a bucket fills: GCRA, with a quarter of a minute's requests at once, rounded up.
type rate struct {
	perMinute int
	interval  time.Duration // in which it gains one request, whole µs
	burst     int           // requests that a full one holds
}

func newRate(perMinute int) rate {
	micros := (time.Minute.Microseconds() + int64(perMinute) - 1) / int64(perMinute)
	return rate{perMinute, time.Duration(micros) * time.Microsecond, (perMinute + 3) / 4}
}

// fillTime is how long an empty bucket takes to be full.
func (p rate) fillTime() time.Duration { return p.interval * time.Duration(p.burst) }

// spend takes one request from a bucket that lacks so much of being full, unless it is empty, and says what it lacks then.
// It is what spend.lua does in Redis.
func (p rate) spend(lack time.Duration) (after time.Duration, taken bool) {
	lack = min(max(lack, 0), p.fillTime())
	if after = lack + p.interval; after > p.fillTime() {
		return lack, false
	}
	return after, true
}

// remaining is how many requests a bucket holds.
func (p rate) remaining(lack time.Duration) int { return int((p.fillTime() - lack) / p.interval) }

// retryAfter is how long a bucket needs until it holds a request.
func (p rate) retryAfter(lack time.Duration) time.Duration { return lack + p.interval - p.fillTime() }
