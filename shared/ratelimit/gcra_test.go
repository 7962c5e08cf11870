package ratelimit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestRate_BurstIsQuarterMinuteAtLeastOne(t *testing.T) {
	t.Parallel()
	for perMinute, burst := range map[int]int{1: 1, 3: 1, 4: 1, 5: 2, 7: 2, 8: 2, 9: 3, 10: 3, 12: 3, 48: 12, 120: 30, 1200: 300, 1_000_000: 250_000} {
		t.Run(fmt.Sprint(perMinute, " per minute"), func(t *testing.T) {
			r := newRate(perMinute)
			if got := r.remaining(0); r.burst != burst || got != burst {
				t.Errorf("burst %d, %d requests in a full bucket, want %d", r.burst, got, burst)
			}
			if got := r.remaining(r.fillTime()); got != 0 {
				t.Errorf("%d requests in an empty bucket, want 0", got)
			}
			if excess := r.interval*time.Duration(perMinute) - time.Minute; excess < 0 || excess > time.Duration(perMinute)*time.Microsecond {
				t.Errorf("%d intervals take %s, want a minute and at most 1 µs more per interval", perMinute, time.Minute+excess)
			}
		})
	}
}

// In any span of time at most the burst and the requests gained in the span are allowed. A client
// that keeps the rate, or waits for retryAfter, is never refused.
func TestRate_NeverExceedsLimitAndAllowsAfterWait(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := newRate(1 + random.IntN(2000))
		now := time.Duration(0)
		full := now // when the bucket is full again
		var taken []time.Duration
		for range 400 {
			now += time.Duration(random.ExpFloat64() * float64(r.interval) * 0.7).Truncate(time.Microsecond)
			before := full - now
			deficit, ok := r.spend(before)
			if ok {
				full = now + deficit
				taken = append(taken, now)
				continue
			}
			if want := min(max(before, 0), r.fillTime()); deficit != want || r.remaining(deficit) != 0 {
				t.Fatalf("seed %d: refused with deficit %s and %d requests left, want %s and 0", seed, deficit, r.remaining(deficit), want)
			}
			wait := r.retryAfter(deficit)
			if wait <= 0 || wait > r.interval {
				t.Fatalf("seed %d: retry after %s, want at most %s", seed, wait, r.interval)
			}
			if _, ok := r.spend(full - (now + wait - time.Microsecond)); ok {
				t.Fatalf("seed %d: allowed 1 µs before the retry time", seed)
			}
			if _, ok := r.spend(full - (now + wait)); !ok {
				t.Fatalf("seed %d: refused at the retry time", seed)
			}
		}
		for i := range taken {
			for j := i; j < len(taken); j++ {
				limit := r.burst + int((taken[j]-taken[i])/r.interval)
				if n := j - i + 1; n > limit {
					t.Fatalf("seed %d: %d requests allowed within %s, want at most %d", seed, n, taken[j]-taken[i], limit)
				}
			}
		}
		full, now = 0, 0
		for range 300 { // at exactly the rate
			deficit, ok := r.spend(full - now)
			if !ok {
				t.Fatalf("seed %d: refused at the rate of the limit", seed)
			}
			full = now + deficit
			now += r.interval
		}
	}
}

func TestRate_LoweredLimitDoesNotLockOut(t *testing.T) {
	t.Parallel()
	r := newRate(120)
	deficit, ok := r.spend(time.Hour) // from higher limits, or from a clock that was set back
	if got := r.retryAfter(deficit); ok || got != r.interval {
		t.Errorf("allowed %t, retry after %s; want false, %s", ok, got, r.interval)
	}
}
