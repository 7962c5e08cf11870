package browser

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

//go:embed testdata/axe-core/axe.min.js
var axe string

// axeViolation is a broken rule of axe-core with the elements that break it.
type axeViolation struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// checkAccessible runs axe-core on the page and fails the test for serious and critical findings.
func (g *guest) checkAccessible(page string) {
	g.t.Helper()
	if eval[string](g, "typeof axe") == "undefined" {
		eval[bool](g, axe+"\n;true")
	}
	g.runAxe(page, func(f axeViolation) { g.t.Errorf("%s: %s (%s): %s", page, f.ID, f.Impact, describeViolation(f)) })
}

func (g *guest) runAxe(page string, each func(axeViolation)) {
	g.t.Helper()
	found, err := chromedp.Run(g.tab, chromedp.Evaluate[struct {
		Passes     int
		Violations []axeViolation
	}](`axe.run(document, {resultTypes: ["violations"]}).then(r => ({Passes: r.passes.length, Violations: r.violations.map(v => ({
		ID: v.id, Impact: v.impact, Help: v.help, Nodes: v.nodes.map(n => ({HTML: n.html, FailureSummary: n.failureSummary}))}))}))`, chromedp.EvalAwaitPromise))
	if err != nil {
		g.t.Fatalf("%s: %v", page, err)
	}
	if found.Passes < 20 {
		g.t.Errorf("%s: only %d rules had anything to look at", page, found.Passes)
	}
	for _, f := range found.Violations {
		if f.Impact == "serious" || f.Impact == "critical" {
			each(f)
		}
	}
}

func describeViolation(f axeViolation) string {
	text := f.Help
	for _, n := range f.Nodes[:min(3, len(f.Nodes))] {
		text += fmt.Sprintf("\n\t%.300s\n\t\t%s", n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", "\n\t\t"))
	}
	return text
}

// Every page is checked twice: in English on a desktop, and right-to-left in dark mode on a phone.
func TestAccessibility_AxeFindsNothingOnAnyPage(t *testing.T) {
	t.Parallel()
	for _, l := range []viewOptions{{}, {locale: "ps-AF", width: 390, dark: true}} {
		t.Run(fmt.Sprintf("%+v", l), func(t *testing.T) {
			t.Parallel()
			g := openPage(t, l)
			g.waitVisible("#popular-cities .city")
			g.checkAccessible("home")

			g.searchFirstCity()
			g.waitVisible("#filters summary")
			g.click("#filters summary")
			g.checkAccessible("list")
			g.click("#filters summary")
			g.click("#results .card:has(.price-night) .heart")
			g.waitPresent("#saved-count:not([hidden])")

			g.click("nav a[data-page=map]")
			g.waitVisible("#map:not([aria-busy]) .pin")
			g.checkAccessible("map")

			g.click("nav a[data-page=saved]")
			g.waitVisible("#saved-list .card")
			g.checkAccessible("saved")

			g.click("#saved-list .card-name a")
			g.waitVisible("#hotel")
			g.waitPresent(".calendar-body:not([aria-busy])")
			g.checkAccessible("hotel")

			g.click("#book-button")
			g.waitPresent("html[data-booked=yes]")
			g.checkAccessible("book")
		})
	}
}

// The check must detect a planted violation.
func TestAccessibility_AxeDetectsUnnamedButton(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{})
	eval[bool](g, axe+"\n;true")
	eval[bool](g, `(document.querySelector(".choices").append(document.createElement("button")), true)`)
	var ids []string
	g.runAxe("home", func(f axeViolation) { ids = append(ids, f.ID) })
	if len(ids) != 1 || ids[0] != "button-name" {
		t.Errorf("found: %v", ids)
	}
}

// With reduced motion the page must not animate: an element that moves, even for a millisecond, is
// elsewhere when the mouse button is released.
func TestAccessibility_ReducedMotionDisablesAnimations(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{})
	g.searchFirstCity()
	g.waitVisible("#filters summary")
	if moving := eval[string](g, `(document.getElementById("filters").open = true,
		document.getAnimations().map(a => a.transitionProperty ?? a.animationName).join(" "))`); moving != "" {
		t.Errorf("the filters open, and these move: %s", moving)
	}
}
