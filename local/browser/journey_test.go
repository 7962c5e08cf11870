package browser

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// types enters the beginning of a place and takes the first suggestion, as a guest does who sees it come.
func (g *guest) types(place string) {
	g.t.Helper()
	g.clicks("#where")
	g.do("typing", chromedp.SendKeys(chromedp.CSS("#where"), place))
	g.do("waiting for "+place, step(chromedp.Poll[bool](fmt.Sprintf(
		`document.querySelector("#suggestions li")?.textContent.startsWith(%q)`, place))))
	g.clicks("#suggestions li")
}

// looksFor searches a place and waits for the answer.
func (g *guest) looksFor(place string) {
	g.t.Helper()
	g.types(place)
	g.clicks("#search-button")
	g.answered()
}

// looksAround searches the first of the popular cities.
func (g *guest) looksAround() {
	g.t.Helper()
	g.clicks("#popular-cities .city")
	g.answered()
}

// again presses the button again and waits for another answer.
func (g *guest) again() {
	g.t.Helper()
	eval[bool](g, `document.getElementById("results").dataset.old = true`)
	g.clicks("#search-button")
	g.answered()
}

func (g *guest) answered() {
	g.t.Helper()
	g.has("#results:not([data-old]):not([aria-busy])")
}

// isLaidOut checks what holds on every page: its direction, its mirror image, and that nothing sticks out at the side.
func (g *guest) isLaidOut(page string) {
	g.t.Helper()
	dir, mirrored := "ltr", "<"
	if g.locale == "ps-AF" {
		dir, mirrored = "rtl", ">"
	}
	if got := eval[string](g, `document.documentElement.lang + " " + getComputedStyle(document.documentElement).direction`); got != g.locale+" "+dir {
		g.t.Errorf("%s: language and direction are %s", page, got)
	}
	if over := eval[string](g, `(() => {
		const page = document.documentElement
		if (page.scrollWidth <= page.clientWidth) return ""
		const out = [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > page.clientWidth + 1 || e.getBoundingClientRect().left < -1)
		return page.scrollWidth + " px wide: " + out.slice(0, 5).map(e => e.tagName + "#" + e.id + "." + e.className).join(" ")
	})()`); over != "" {
		g.t.Errorf("%s: %s", page, over)
	}
	if out := eval[string](g, `[...document.querySelectorAll("main input, main select, main button:not(.heart, .pin)")].filter(e => {
		const within = e.closest(".booking, .search-form, .filters, main"), box = e.getBoundingClientRect(), edge = within.getBoundingClientRect(), style = getComputedStyle(within)
		return box.width && (box.left < edge.left + parseFloat(style.paddingLeft) - 1 || box.right > edge.right - parseFloat(style.paddingRight) + 1)
	}).map(e => e.tagName + "#" + e.id).join(" ")`); out != "" {
		g.t.Errorf("%s: out of their box: %s", page, out)
	}
	if page != "book" && !eval[bool](g, `(b => b.left + b.right `+mirrored+` innerWidth)(document.querySelector(".brand").getBoundingClientRect())`) {
		g.t.Errorf("%s: the brand is at the wrong side", page)
	}
	if g.locale == "ps-AF" && !eval[bool](g, `[...document.fonts].some(f => f.family === "Vazirmatn" && f.status === "loaded")`) {
		g.t.Errorf("%s: without the letters of Pashto", page)
	}
}

func TestFromTheFirstLookToABookingByMouse(t *testing.T) {
	t.Parallel()
	for _, locale := range []string{"en", "ps-AF"} {
		for _, width := range []int64{1280, 390} {
			t.Run(fmt.Sprintf("%s at %d px", locale, width), func(t *testing.T) {
				t.Parallel()
				g := visit(t, look{locale: locale, width: width, plain: locale == "ps-AF"}) // with and without the inside view
				g.searchesAndSaves()
				g.looksAtTheMap()
				g.opensWhatWasSaved()
				g.books()
			})
		}
	}
}

// searchesAndSaves takes the place that is suggested before anything is typed.
func (g *guest) searchesAndSaves() {
	g.t.Helper()
	g.isLaidOut("home")
	g.clicks("#where")
	g.clicks("#suggestions li")
	g.clicks("#search-button")
	g.answered()
	g.sees("#results .card .price-night")
	g.sees("#filters summary")
	g.isLaidOut("list")
	if g.locale == "ps-AF" {
		if text := g.text("#results-title"); strings.ContainsAny(text, "abcdefghijklmnopqrstuvwxyz0123456789") {
			g.t.Errorf("the list is called %q", text)
		}
		if price := g.text("#results .price-night"); !strings.ContainsAny(price, "۰۱۲۳۴۵۶۷۸۹") {
			g.t.Errorf("a price reads %q", price)
		}
	}
	if g.width < 500 { // the form is one line there, and opens
		g.clicks("#search-fold summary")
		g.sees("#search-button")
		g.isLaidOut("list with its form")
		g.clicks("#search-fold summary")
	}
	g.clicks("#results .card:has(.price-night) .heart")
	g.has("#results .card:has(.price-night) .heart[aria-pressed=true]:not(:disabled)")
	g.has("#saved-count:not([hidden])")
}

func (g *guest) looksAtTheMap() {
	g.t.Helper()
	g.clicks("nav a[data-page=map]")
	g.sees("#map:not([aria-busy]) .pin")
	g.clicksOneOf(".pin:not([hidden])")
	g.sees("#peek .card")
	g.sees("#spotlight-rate")
	g.isLaidOut("map")
}

func (g *guest) opensWhatWasSaved() {
	g.t.Helper()
	g.clicks("nav a[data-page=saved]")
	g.sees("#saved-list .card")
	if n := g.count("#saved-list .card"); n != 1 {
		g.t.Errorf("%d hotels are saved", n)
	}
	g.isLaidOut("saved")
	g.clicks("#saved-list .card-name a")
	g.sees("#hotel")
	g.has("#part-prices")
	g.isLaidOut("hotel")
}

// books goes to the booking page, where the link works once.
func (g *guest) books() {
	g.t.Helper()
	hotel := g.text("#hotel-name")
	// Impatient, the guest presses again as soon as it can be pressed. The page that is left counts how often it asks.
	eval[bool](g, `(() => {
		const button = document.getElementById("book-button")
		new MutationObserver(() => button.disabled || button.click()).observe(button, {attributes: true})
		window.fetch = (ask => (url, options) => {
			if (url.endsWith("/handoff")) sessionStorage.setItem("handoffs", Number(sessionStorage.getItem("handoffs")) + 1)
			return ask(url, options)
		})(window.fetch)
		return true
	})()`)
	g.clicks("#book-button")
	g.has("html[data-booked=yes]")
	g.sees("#verified")
	if n := eval[string](g, `sessionStorage.getItem("handoffs")`); n != "1" {
		g.t.Errorf("%s handoffs were asked for", n)
	}
	currency := map[string]string{"en": "USD", "ps-AF": "AFN"}[g.locale]
	for fact, want := range map[string]string{"hotel": hotel, "language": g.locale, "currency": currency} {
		if got := g.text("[data-fact=" + fact + "]"); got != want {
			g.t.Errorf("the booking page says %s is %q, not %q", fact, got, want)
		}
	}
	g.isLaidOut("book")

	// The token has left the address and the history.
	entries, err := chromedp.Run(g.tab, chromedp.NavigationEntries())
	if err != nil {
		g.t.Fatal(err)
	}
	for _, entry := range entries.Entries {
		if strings.Contains(entry.URL, "h=") {
			g.t.Errorf("the history holds %s", entry.URL)
		}
	}

	g.refused("/_local/tenant/bootstrap")
	g.clicks("#use-again")
	g.sees("#again-outcome #problem")
	if code := g.text("#again-outcome .problem-code"); !strings.HasSuffix(code, "HANDOFF_REPLAYED") {
		g.t.Errorf("the second use: %s", code)
	}
	g.isLaidOut("book")
	g.clicks("#back-to-search")
	g.sees("#hotel")
	g.isLaidOut("hotel again") // in the same language
}

// Whoever finds the link in another browser is refused, and is not told whose it was.
func TestALinkThatWasUsedIsRefusedToWhoeverFindsIt(t *testing.T) {
	t.Parallel()
	g := visit(t, look{})
	g.looksAround()
	g.clicks("#results .card:has(.price-night) .card-name a")
	g.clicks("#book-button")
	g.has("html[data-booked=yes]")
	hotel := g.text("[data-fact=hotel]")

	finder := visit(t, look{})
	finder.refused("/_local/tenant/bootstrap")
	finder.opens("/book?" + g.link().RawQuery)
	finder.has("html[data-booked=refused]")
	finder.sees("#problem .problem-request")
	if shown := finder.text("main"); strings.Contains(shown, hotel) || !strings.Contains(shown, "HANDOFF_REPLAYED") {
		t.Errorf("the finder reads: %s", shown)
	}
	if at := eval[string](finder, "location.search"); at != "" {
		t.Errorf("the token stays in the address: %s", at)
	}
	finder.sees("#back-to-search")
}

// link is the address of the booking page with its token, as the browser asked for it.
func (g *guest) link() *url.URL {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, asked := range g.asked {
		if u, err := url.Parse(asked); err == nil && u.Path == "/book" && u.Query().Get("h") != "" {
			return u
		}
	}
	g.t.Fatal("nobody went to the booking page")
	return nil
}
