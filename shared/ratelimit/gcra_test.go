package ratelimit

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestRate_BurstIsQuarterMinuteAtLeastOne(t *testing.T) {
	for perMinute, burst := range map[int]int{1: 1, 3: 1, 4: 1, 5: 2, 7: 2, 8: 2, 9: 3, 10: 3, 12: 3, 48: 12, 120: 30, 1200: 300, 1_000_000: 250_000} {
		p := newRate(perMinute)
		if p.burst != burst || p.remaining(0) != burst || p.remaining(p.fillTime()) != 0 {
			t.Errorf("%d a minute: a burst of %d, %d left of a full bucket", perMinute, p.burst, p.remaining(0))
		}
		if off := p.interval*time.Duration(perMinute) - time.Minute; off < 0 || off > time.Duration(perMinute)*time.Microsecond {
			t.Errorf("%d a minute take %s", perMinute, time.Minute+off)
		}
	}
}

// What is let through in any span of time is at most the burst and what the span gains; and whoever keeps to the pace, or
// waits as told, is never refused.
func TestRate_NeverExceedsLimitAndAllowsAfterWait(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		p := newRate(1 + random.IntN(2000))
		now := time.Duration(0)
		full := now // when the bucket is full again
		var taken []time.Duration
		for range 400 {
			now += time.Duration(random.ExpFloat64() * float64(p.interval) * 0.7).Truncate(time.Microsecond)
			before := full - now
			lack, ok := p.spend(before)
			if ok {
				full = now + lack
				taken = append(taken, now)
				continue
			}
			if lack != min(max(before, 0), p.fillTime()) || p.remaining(lack) != 0 {
				t.Fatalf("seed %d: refused with %d left, and lacks %s instead of %s", seed, p.remaining(lack), lack, before)
			}
			wait := p.retryAfter(lack)
			if wait <= 0 || wait > p.interval {
				t.Fatalf("seed %d: told to wait %s of %s", seed, wait, p.interval)
			}
			if _, early := p.spend(full - (now + wait - time.Microsecond)); early {
				t.Fatalf("seed %d: let through before the time", seed)
			}
			if _, ok := p.spend(full - (now + wait)); !ok {
				t.Fatalf("seed %d: waited as told, and is refused", seed)
			}
		}
		for i := range taken {
			for j := i; j < len(taken); j++ {
				most := p.burst + int((taken[j]-taken[i])/p.interval)
				if n := j - i + 1; n > most {
					t.Fatalf("seed %d: %d within %s, at most %d", seed, n, taken[j]-taken[i], most)
				}
			}
		}
		full, now = 0, 0
		for range 300 { // at the pace
			lack, ok := p.spend(full - now)
			if !ok {
				t.Fatalf("seed %d: refused at the pace of the limit", seed)
			}
			full = now + lack
			now += p.interval
		}
	}
}

func TestRate_LoweredLimitDoesNotLockOut(t *testing.T) {
	p := newRate(120)
	lack, ok := p.spend(time.Hour) // of limits, or of a clock, that were others
	if ok || p.retryAfter(lack) != p.interval {
		t.Errorf("wait %s", p.retryAfter(lack))
	}
}
