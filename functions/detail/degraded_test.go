package detail

import (
	"context"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/testkit/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func TestDetail_OptionalPartFailureDegrades(t *testing.T) {
	t.Parallel()
	base := newHarness(t)
	for _, fault := range []string{"fails", "hangs", "breaks the contract"} {
		for _, part := range []string{"pricing", "search", "theme"} {
			t.Run(part+" "+fault, func(t *testing.T) {
				h := base.newInstance()
				h.FlushRedis()
				switch fault {
				case "fails":
					h.upstreams.Fail(part)
				case "hangs":
					h.upstreams.Hang(part)
				default:
					if part == "theme" {
						t.Skip("malformed brands are tested in package upstream")
					}
					h.upstreams.Update(func() { h.upstreams.price, h.upstreams.booked = -1, -1 })
				}
				began := time.Now()
				a := h.mustGet(detailURL)
				if took := time.Since(began); took > web.Budget+functest.SlackTime {
					t.Errorf("got an answer after %s; want at most %s", took, web.Budget+functest.SlackTime)
				}
				if fault == "breaks the contract" {
					if a.degradedParts() != "search,pricing" || a.Degraded[0].Reason != "bad-response" {
						t.Errorf(`got %s; want degraded = "search,pricing", Degraded[0].Reason = "bad-response"`, a.Text)
					}
				} else if a.degradedParts() != part {
					t.Errorf("got degraded %q; want %q: %s", a.degradedParts(), part, a.Text)
				}
				if got := a.Header.Get("Cache-Control"); got != cacheControlShort {
					t.Errorf("partial answer: got Cache-Control %s; want %s", got, cacheControlShort)
				}
				if has := a.CheapestRateSnapshot != nil && a.PriceCalendarPreview != nil; has != (a.degradedParts() != "pricing" && a.degradedParts() != "search,pricing") {
					t.Errorf("got rate = %t, which does not fit the degraded parts: %s", has, a.Text)
				}
				if has := a.PopularitySignals != nil && a.SimilarProperties != nil; has != !strings.Contains(a.degradedParts(), "search") {
					t.Errorf("got popularity = %t, which does not fit the degraded parts: %s", has, a.Text)
				}
				if a.BrandPeek.Neutral != (a.degradedParts() == "theme") {
					t.Errorf("got neutral brand = %t, which does not fit the degraded parts: %s", a.BrandPeek.Neutral, a.Text)
				}
				if hit := h.mustGet(detailURL); hit.Header.Get("Cache-Control") != cacheControlShort {
					t.Errorf("hit: got Cache-Control %s; want %s", hit.Header.Get("Cache-Control"), cacheControlShort)
				}
				h.upstreams.Recover(part)
				h.upstreams.Update(func() { h.upstreams.price, h.upstreams.booked = 450000, 12 })
				h.Advance(map[bool]time.Duration{true: 3 * time.Second, false: 17 * time.Second}[a.degradedParts() == "pricing"])
				// the breakers of a new instance are closed
				if a = h.newInstance().mustGet(detailURL); a.degradedParts() != "" {
					t.Errorf("after recovery: got %s; want nothing degraded", a.Text)
				}
				if got := a.Header.Get("Cache-Control"); got != cacheControlFull {
					t.Errorf("after recovery: got Cache-Control %s; want %s", got, cacheControlFull)
				}
			})
		}
	}
}

func TestWithReserve_EndsBeforeParentDeadline(t *testing.T) {
	t.Parallel()
	for limit, want := range map[time.Duration]time.Duration{0: 0, time.Hour: time.Hour - compositionReserve} {
		ctx, now := t.Context(), time.Now()
		if limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, now.Add(limit))
			defer cancel()
		}
		optional, cancel := withReserve(ctx)
		deadline, limited := optional.Deadline()
		if limited != (want > 0) || limited && !deadline.Equal(now.Add(want)) {
			t.Errorf("limit %s: got %s; want %s", limit, deadline.Sub(now), want)
		}
		if cancel(); optional.Err() == nil {
			t.Error("the context did not end with its cancel function")
		}
	}
}

func TestDetail_AllOptionalPartsMayBeMissing(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	for _, part := range []string{"pricing", "search", "theme"} {
		h.upstreams.Hang(part)
	}
	began := time.Now()
	a := h.mustGet(detailURL)
	if took := time.Since(began); took > web.Budget+functest.SlackTime || a.degradedParts() != "search,pricing,theme" {
		t.Errorf("got %s after %s; want three degraded parts within the budget", a.Text, took)
	}
}

func TestDetail_UnlistedHotelHasPage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.upstreams.NotFound("search")
	a := h.mustGet(detailURL)
	if a.degradedParts() != "" || a.PopularitySignals != nil || a.SimilarProperties != nil || a.CheapestRateSnapshot == nil || a.Header.Get("Cache-Control") != cacheControlFull {
		t.Errorf(`got %s; want degraded = "", PopularitySignals = nil, SimilarProperties = nil, CheapestRateSnapshot set, Cache-Control = %v`, a.Text, cacheControlFull)
	}
}

func TestDetail_SoldOutNightIsNotDegraded(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.upstreams.Update(func() { h.upstreams.soldOut = true })
	for range 2 {
		a := h.mustGet(detailURL)
		if a.CheapestRateSnapshot != nil || a.PriceCalendarPreview != nil || a.degradedParts() != "" || a.DefaultStay.Dates.CheckIn == "" || a.Header.Get("Cache-Control") != cacheControlFull {
			t.Errorf(`got %s; want CheapestRateSnapshot = nil, PriceCalendarPreview = nil, degraded = "", non-empty DefaultStay.Dates.CheckIn, Cache-Control = %v`, a.Text, cacheControlFull)
		}
	}
	h.upstreams.Update(func() { h.upstreams.soldOut = false })
	h.Advance(61 * time.Second)
	if a := h.mustGet(detailURL); a.CheapestRateSnapshot == nil || a.cacheState() != "HIT" {
		t.Errorf("after a room became free: got %s %s; want HIT with a rate", a.cacheState(), a.Text)
	}
}

func TestDetail_PropertyFailureServesStaleThen503(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.mustGet(detailURL)
	h.upstreams.Fail("property")
	h.Advance(6 * time.Minute)
	a := h.mustGet(detailURL)
	if a.cacheState() != "STALE" || a.Header.Get("Cache-Control") != cacheControlShort || !a.CheapestRateSnapshot.IsStale || !a.PriceCalendarPreview[3].IsStale {
		t.Errorf("with a stored page: got %s, %s, %s; want STALE with stale rates", a.cacheState(), a.Header.Get("Cache-Control"), a.Text)
	}
	if a := h.get(hotelPath + "?locale=en&currency=AFN"); a.StatusCode != 503 || a.Code != "MELMASTOON.BFF.CONSUMER.UPSTREAM_UNAVAILABLE" ||
		a.Header.Get("Retry-After") == "" || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("without a stored page: got %d %s; want 503", a.StatusCode, a.Text)
	}
	h.Advance(10 * time.Minute)
	if a := h.get(detailURL); a.StatusCode != 503 {
		t.Errorf("after the page expired: got %d %s; want 503", a.StatusCode, a.Text)
	}
}

func TestDetail_PropertyTimeoutAnswers504(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.upstreams.Hang("property")
	began := time.Now()
	a := h.get(detailURL)
	if took := time.Since(began); took > web.Budget+functest.SlackTime || a.StatusCode != 504 || a.Code != "MELMASTOON.BFF.CONSUMER.UPSTREAM_BUDGET_EXCEEDED" {
		t.Errorf("got %d after %s: %s; want 504 within the budget", a.StatusCode, took, a.Text)
	}
}

func TestDetail_SurvivesRedisOutage(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	days := hotelPath + "/availability?from=2026-12-01&to=2026-12-02"
	h.mustGet(detailURL)
	h.Redis.Stop()
	for _, path := range []string{detailURL, days} {
		if a := h.mustGet(path); a.cacheState() != "MISS" || a.degradedParts() != "" || a.Header.Get("ETag") == "" {
			t.Errorf("without Redis: got %s %s; want MISS", a.cacheState(), a.Text)
		}
	}
	h.Redis.Start()
	h.Eventually("a hit after Redis is back", func() bool {
		h.mustGet(detailURL)
		return h.mustGet(detailURL).cacheState() == "HIT"
	})
}
