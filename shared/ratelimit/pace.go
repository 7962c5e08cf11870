package ratelimit

import "time"

// pace is how a bucket fills: GCRA, with a quarter of a minute's requests at once, rounded up.
type pace struct {
	perMinute int
	gain      time.Duration // in which it gains one request, whole µs
	burst     int           // requests that a full one holds
}

func paceOf(perMinute int) pace {
	micros := (time.Minute.Microseconds() + int64(perMinute) - 1) / int64(perMinute)
	return pace{perMinute, time.Duration(micros) * time.Microsecond, (perMinute + 3) / 4}
}

// whole is how long an empty bucket takes to be full.
func (p pace) whole() time.Duration { return p.gain * time.Duration(p.burst) }

// spend takes one request from a bucket that lacks so much of being full, unless it is empty, and says what it lacks then.
// It is what spend.lua does in Redis.
func (p pace) spend(lack time.Duration) (after time.Duration, taken bool) {
	lack = min(max(lack, 0), p.whole())
	if after = lack + p.gain; after > p.whole() {
		return lack, false
	}
	return after, true
}

// left is how many requests a bucket holds.
func (p pace) left(lack time.Duration) int { return int((p.whole() - lack) / p.gain) }

// wait is how long a bucket needs until it holds a request.
func (p pace) wait(lack time.Duration) time.Duration { return lack + p.gain - p.whole() }
