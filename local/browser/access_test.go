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

// finding is a rule of axe-core that a page breaks, and where.
type finding struct {
	ID, Impact, Help string
	Nodes            []struct{ HTML, FailureSummary string }
}

// isOpenToAll holds the page against the rules of axe-core: none of its findings may be serious or critical.
func (g *guest) isOpenToAll(page string) {
	g.t.Helper()
	if eval[string](g, "typeof axe") == "undefined" {
		eval[bool](g, axe+"\n;true")
	}
	g.finds(page, func(f finding) { g.t.Errorf("%s: %s (%s): %s", page, f.ID, f.Impact, describe(f)) })
}

func (g *guest) finds(page string, each func(finding)) {
	g.t.Helper()
	found, err := chromedp.Run(g.tab, chromedp.Evaluate[struct {
		Passes     int
		Violations []finding
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

func describe(f finding) string {
	text := f.Help
	for _, n := range f.Nodes[:min(3, len(f.Nodes))] {
		text += fmt.Sprintf("\n\t%.300s\n\t\t%s", n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", "\n\t\t"))
	}
	return text
}

// Every page, once as most see it, and once turned around, dark, on a phone.
func TestEveryPageIsOpenToAll(t *testing.T) {
	t.Parallel()
	for _, l := range []look{{}, {locale: "ps-AF", width: 390, dark: true}} {
		t.Run(fmt.Sprintf("%+v", l), func(t *testing.T) {
			t.Parallel()
			g := visit(t, l)
			g.sees("#popular-cities .city")
			g.isOpenToAll("home")

			g.looksAround()
			g.sees("#filters summary")
			g.clicks("#filters summary")
			g.isOpenToAll("list")
			g.clicks("#filters summary")
			g.clicks("#results .card:has(.price-night) .heart")
			g.has("#saved-count:not([hidden])")

			g.clicks("nav a[data-page=map]")
			g.sees("#map:not([aria-busy]) .pin")
			g.isOpenToAll("map")

			g.clicks("nav a[data-page=saved]")
			g.sees("#saved-list .card")
			g.isOpenToAll("saved")

			g.clicks("#saved-list .card-name a")
			g.sees("#hotel")
			g.has(".calendar-body:not([aria-busy])")
			g.isOpenToAll("hotel")

			g.clicks("#book-button")
			g.has("html[data-booked=yes]")
			g.isOpenToAll("book")
		})
	}
}

// What finds nothing must be able to find something.
func TestAxeFindsAButtonWithoutAName(t *testing.T) {
	t.Parallel()
	g := visit(t, look{})
	eval[bool](g, axe+"\n;true")
	eval[bool](g, `(document.querySelector(".choices").append(document.createElement("button")), true)`)
	var ids []string
	g.finds("home", func(f finding) { ids = append(ids, f.ID) })
	if len(ids) != 1 || ids[0] != "button-name" {
		t.Errorf("found: %v", ids)
	}
}

// Who asks for less motion has none: what glides, be it for a millisecond, is elsewhere when the mouse is let go.
func TestNothingMovesForWhoAsksForLessMotion(t *testing.T) {
	t.Parallel()
	g := visit(t, look{})
	g.looksAround()
	g.sees("#filters summary")
	if moving := eval[string](g, `(document.getElementById("filters").open = true,
		document.getAnimations().map(a => a.transitionProperty ?? a.animationName).join(" "))`); moving != "" {
		t.Errorf("the filters open, and these move: %s", moving)
	}
}
