package browser

import (
	"context"
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// setSwitch sets a switch of the inside view by its visible text and waits for the confirmation. A
// drop-down list is a separate window that the mouse cannot reach, so setSwitch types the choice.
func (g *guest) setSwitch(id, choice, said string) {
	g.t.Helper()
	g.run("choosing "+choice, chromedp.SendKeys(chromedp.CSS("#"+id), choice))
	g.waitOutcome(said + ": done")
}

func (g *guest) waitOutcome(said string) {
	g.t.Helper()
	g.run("waiting for "+said, discardResult(chromedp.Poll[bool](fmt.Sprintf(`document.getElementById("switch-outcome").textContent === %q`, said))))
}

// discardResult wraps an action and drops its value.
func discardResult[T any](action chromedp.Action[T]) chromedp.Action[chromedp.Void] {
	return func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := action(ctx, tab)
		return chromedp.Void{}, err
	}
}

// Three seconds are the limit of the page, not of this machine: the service stops waiting for
// prices after
// 0.8 s.
func TestSearch_HangingPricingShowsListWithoutPrices(t *testing.T) {
	g := openPage(t, viewOptions{})
	g.setSwitch("upstream-pricing", "hangs", "pricing hangs")
	g.selectPlace("Bamyan")
	g.click("#search-button")
	g.runWithin(3*time.Second, "waiting for the note", chromedp.WaitVisible(chromedp.CSS("#degraded-note")))
	if cards, without, with := g.count("#results .card"), g.count("#results .price-none:not(.sold-out)"), g.count("#results .price-night"); cards == 0 || without != cards || with > 0 {
		t.Errorf("of %d cards %d have no price and %d have one", cards, without, with)
	}
	g.waitVisible("#inside-request .tag-bad") // the inside view names the missing part
	g.checkLayout("list without prices")

	g.setSwitch("upstream-pricing", "normal", "pricing normal")
	// no degraded response is cached; the test's own time limit ends the loop
	for g.count("#degraded-note") > 0 {
		g.searchAgain()
	}
	g.waitVisible("#results .card .price-night")
}

func TestSearch_UpstreamFailureShowsProblemAndRetry(t *testing.T) {
	g := openPage(t, viewOptions{})
	g.setSwitch("upstream-search", "broken", "search broken")
	g.allowError("/bff/consumer/v1/search")
	g.allowError("/bff/consumer/v1/facets") // facets come from the same upstream
	g.searchPlace("Dushanbe")
	g.waitVisible("#problem .problem-title")
	if code, request := g.text("#problem .problem-code"), g.text("#problem .problem-request"); code != "MELMASTOON.BFF.CONSUMER.UPSTREAM_UNAVAILABLE" || !requestIDPattern.MatchString(request) {
		t.Errorf("the guest reads %q and %q", code, request)
	}
	g.waitVisible("#inside-request .status-5")

	g.setSwitch("upstream-search", "normal", "search normal")
	g.click("#problem button:not(:disabled)")
	g.waitVisible("#results .card")
}

var requestIDPattern = regexp.MustCompile(`^Request req_[0-9A-HJKMNP-TV-Z]{26}$`)

func TestSearch_HidesSuspendedTenantUntilReinstated(t *testing.T) {
	g := openPage(t, viewOptions{})
	g.searchPlace("Doha")
	g.waitVisible("#results .card")
	tenant := g.attribute("#results .card", "data-tenant")
	mine := `#results .card[data-tenant="` + tenant + `"]`
	before, all := g.count(mine), g.count("#results .card")

	g.run("choosing the tenant", chromedp.SetValue(chromedp.CSS("#tenant"), tenant))
	g.click("#suspend")
	g.waitOutcome("Suspend: done")
	g.searchAgain()
	if now, rest := g.count(mine), g.count("#results .card"); now > 0 || rest != all-before {
		t.Errorf("the tenant had %d of %d cards, and has %d of %d", before, all, now, rest)
	}

	g.run("choosing the tenant", chromedp.SetValue(chromedp.CSS("#tenant"), tenant))
	g.click("#reinstate")
	g.waitOutcome("Reinstate: done")
	g.searchAgain()
	if now := g.count(mine); now != before {
		t.Errorf("reinstated, the tenant has %d cards of %d", now, before)
	}
}
