package ratelimit

import "time"

// rate is the refill rate and the capacity of a bucket, by the generic cell rate algorithm (GCRA).
type rate struct {
	perMinute int
	interval  time.Duration // until the bucket gains one request, whole µs
	burst     int           // requests in a full bucket: a quarter of a minute's, rounded up
}

func newRate(perMinute int) rate {
	micros := (time.Minute.Microseconds() + int64(perMinute) - 1) / int64(perMinute)
	return rate{perMinute, time.Duration(micros) * time.Microsecond, (perMinute + 3) / 4}
}

// fillTime returns the time in which an empty bucket fills.
func (r rate) fillTime() time.Duration { return r.interval * time.Duration(r.burst) }

// spend takes one request from a bucket that is full after deficit. It returns the new deficit and
// true, or the unchanged deficit and false if the bucket is empty. A deficit above fillTime counts
// as an empty bucket. spend.lua implements the same rule in Redis.
func (r rate) spend(deficit time.Duration) (after time.Duration, taken bool) {
	deficit = min(max(deficit, 0), r.fillTime())
	if after = deficit + r.interval; after > r.fillTime() {
		return deficit, false
	}
	return after, true
}

// remaining returns the number of requests in a bucket.
func (r rate) remaining(deficit time.Duration) int { return int((r.fillTime() - deficit) / r.interval) }

// retryAfter returns the time until an empty bucket holds one request.
func (r rate) retryAfter(deficit time.Duration) time.Duration {
	return deficit + r.interval - r.fillTime()
}
