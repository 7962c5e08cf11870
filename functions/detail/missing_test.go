package detail

import (
	"context"
	"strings"
	"testing"
	"time"

	"melmastoon.ghasi.io/bff-consumer/shared/functest"
	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

func TestAnOptionalPartThatFails(t *testing.T) {
	for _, how := range []string{"fails", "hangs", "breaks the contract"} {
		for _, part := range []string{"pricing", "search", "theme"} {
			t.Run(part+" "+how, func(t *testing.T) {
				h := newHouse(t)
				switch how {
				case "fails":
					h.up.Fail(part)
				case "hangs":
					h.up.Hang(part)
				default:
					if part == "theme" {
						t.Skip("a brand that is not a brand is in the tests of upstream")
					}
					h.up.Change(func() { h.up.price, h.up.booked = -1, -1 })
				}
				began := time.Now()
				a := h.ok(inURL)
				if took := time.Since(began); took > web.Budget+functest.Late {
					t.Errorf("answered after %s", took)
				}
				if how == "breaks the contract" {
					if a.lacks() != "search,pricing" || a.Degraded[0].Reason != "bad-response" {
						t.Errorf("%s", a.Text)
					}
				} else if a.lacks() != part {
					t.Errorf("%s is not what is missing: %s", part, a.Text)
				}
				if got := a.Header.Get("Cache-Control"); got != brief {
					t.Errorf("a partial answer is %s", got)
				}
				if has := a.CheapestRateSnapshot != nil && a.PriceCalendarPreview != nil; has != (a.lacks() != "pricing" && a.lacks() != "search,pricing") {
					t.Errorf("rate: %s", a.Text)
				}
				if has := a.PopularitySignals != nil && a.SimilarProperties != nil; has != !strings.Contains(a.lacks(), "search") {
					t.Errorf("popularity: %s", a.Text)
				}
				if a.BrandPeek.Neutral != (a.lacks() == "theme") {
					t.Errorf("brand: %s", a.Text)
				}
				if hit := h.ok(inURL); hit.Header.Get("Cache-Control") != brief {
					t.Errorf("kept, it is %s", hit.Header.Get("Cache-Control"))
				}
				h.up.Recover(part)
				h.up.Change(func() { h.up.price, h.up.booked = 450000, 12 })
				h.Advance(map[bool]time.Duration{true: 3 * time.Second, false: 17 * time.Second}[a.lacks() == "pricing"])
				if a = h.beside().ok(inURL); a.lacks() != "" { // an instance whose breakers are closed
					t.Errorf("not mended: %s", a.Text)
				}
				if got := a.Header.Get("Cache-Control"); got != stored {
					t.Errorf("whole again, it is %s", got)
				}
			})
		}
	}
}

func TestOptionalPartsLeaveTimeToPutThemTogether(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{0: 0, time.Hour: time.Hour - spare} {
		ctx, now := t.Context(), time.Now()
		if limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, now.Add(limit))
			defer cancel()
		}
		optional, cancel := sparing(ctx)
		deadline, limited := optional.Deadline()
		if limited != (want > 0) || limited && !deadline.Equal(now.Add(want)) {
			t.Errorf("%s became %s", limit, deadline.Sub(now))
		}
		if cancel(); optional.Err() == nil {
			t.Error("goes on when nobody waits any more")
		}
	}
}

func TestEveryOptionalPartMayBeMissingAtOnce(t *testing.T) {
	h := newHouse(t)
	for _, part := range []string{"pricing", "search", "theme"} {
		h.up.Hang(part)
	}
	began := time.Now()
	a := h.ok(inURL)
	if took := time.Since(began); took > web.Budget+functest.Late || a.lacks() != "search,pricing,theme" {
		t.Errorf("%s after %s", a.Text, took)
	}
}

func TestAHotelThatIsNotListedYetHasAPage(t *testing.T) {
	h := newHouse(t)
	h.up.NotKnow("search")
	a := h.ok(inURL)
	if a.lacks() != "" || a.PopularitySignals != nil || a.SimilarProperties != nil || a.CheapestRateSnapshot == nil || a.Header.Get("Cache-Control") != stored {
		t.Errorf("%s", a.Text)
	}
}

func TestASoldOutNightHasNoRateAndNothingIsMissing(t *testing.T) {
	h := newHouse(t)
	h.up.Change(func() { h.up.soldOut = true })
	for range 2 {
		a := h.ok(inURL)
		if a.CheapestRateSnapshot != nil || a.PriceCalendarPreview != nil || a.lacks() != "" || a.DefaultStay.Dates.CheckIn == "" || a.Header.Get("Cache-Control") != stored {
			t.Errorf("%s", a.Text)
		}
	}
	h.up.Change(func() { h.up.soldOut = false })
	h.Advance(61 * time.Second)
	if a := h.ok(inURL); a.CheapestRateSnapshot == nil || a.state() != "HIT" {
		t.Errorf("a room came back: %s %s", a.state(), a.Text)
	}
}

func TestPropertyServiceFails(t *testing.T) {
	h := newHouse(t)
	h.ok(inURL)
	h.up.Fail("property")
	h.Advance(6 * time.Minute)
	a := h.ok(inURL)
	if a.state() != "STALE" || a.Header.Get("Cache-Control") != brief || !a.CheapestRateSnapshot.IsStale || !a.PriceCalendarPreview[3].IsStale {
		t.Errorf("after a good answer: %s, %s, %s", a.state(), a.Header.Get("Cache-Control"), a.Text)
	}
	if a := h.get(address + "?locale=en&currency=AFN"); a.StatusCode != 503 || a.Code != "MELMASTOON.BFF.CONSUMER.UPSTREAM_UNAVAILABLE" ||
		a.Header.Get("Retry-After") == "" || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("when there never was: %d %s", a.StatusCode, a.Text)
	}
	h.Advance(10 * time.Minute)
	if a := h.get(inURL); a.StatusCode != 503 {
		t.Errorf("when nothing is kept: %d %s", a.StatusCode, a.Text)
	}
}

func TestPropertyServiceHangs(t *testing.T) {
	h := newHouse(t)
	h.up.Hang("property")
	began := time.Now()
	a := h.get(inURL)
	if took := time.Since(began); took > web.Budget+functest.Late || a.StatusCode != 504 || a.Code != "MELMASTOON.BFF.CONSUMER.UPSTREAM_BUDGET_EXCEEDED" {
		t.Errorf("%d after %s: %s", a.StatusCode, took, a.Text)
	}
}

func TestRedisStopsAndComesBack(t *testing.T) {
	h := newHouse(t)
	days := address + "/availability?from=2026-12-01&to=2026-12-02"
	h.ok(inURL)
	h.Redis.Stop()
	for _, path := range []string{inURL, days} {
		if a := h.ok(path); a.state() != "MISS" || a.lacks() != "" || a.Header.Get("ETag") == "" {
			t.Errorf("without Redis: %s %s", a.state(), a.Text)
		}
	}
	h.Redis.Start()
	h.Eventually("Redis is used again", func() bool {
		h.ok(inURL)
		return h.ok(inURL).state() == "HIT"
	})
}
