package browser

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// selectPlace types a prefix of a place and selects the first suggestion once it is visible.
func (g *guest) selectPlace(place string) {
	g.t.Helper()
	g.click("#where")
	g.run("typing", chromedp.SendKeys(chromedp.CSS("#where"), place))
	g.run("waiting for "+place, discardResult(chromedp.Poll[bool](fmt.Sprintf(
		`document.querySelector("#suggestions li")?.textContent.startsWith(%q)`, place))))
	g.click("#suggestions li")
}

// searchPlace searches a place and waits for the response.
func (g *guest) searchPlace(place string) {
	g.t.Helper()
	g.selectPlace(place)
	g.click("#search-button")
	g.waitResults()
}

// searchFirstCity searches the first of the popular cities.
func (g *guest) searchFirstCity() {
	g.t.Helper()
	g.click("#popular-cities .city")
	g.waitResults()
}

// searchAgain clicks the search button again and waits for the next response.
func (g *guest) searchAgain() {
	g.t.Helper()
	eval[bool](g, `document.getElementById("results").dataset.old = true`)
	g.click("#search-button")
	g.waitResults()
}

func (g *guest) waitResults() {
	g.t.Helper()
	g.waitPresent("#results:not([data-old]):not([aria-busy])")
}

// checkLayout checks the text direction and the mirrored layout, and that no element overflows the
// width.
func (g *guest) checkLayout(page string) {
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

func TestJourney_SearchToBookingByMouse(t *testing.T) {
	t.Parallel()
	for _, locale := range []string{"en", "ps-AF"} {
		for _, width := range []int64{1280, 390} {
			t.Run(fmt.Sprintf("%s at %d px", locale, width), func(t *testing.T) {
				t.Parallel()
				// with and without the inside view
				g := openPage(t, viewOptions{locale: locale, width: width, plain: locale == "ps-AF"})
				g.searchAndSave()
				g.openMap()
				g.openSaved()
				g.book()
			})
		}
	}
}

// searchAndSave searches the place that is suggested before any input and saves a property.
func (g *guest) searchAndSave() {
	g.t.Helper()
	g.checkLayout("home")
	g.click("#where")
	g.click("#suggestions li")
	g.click("#search-button")
	g.waitResults()
	g.waitVisible("#results .card .price-night")
	g.waitVisible("#filters summary")
	g.checkLayout("list")
	if g.locale == "ps-AF" {
		if text := g.text("#results-title"); strings.ContainsAny(text, "abcdefghijklmnopqrstuvwxyz0123456789") {
			g.t.Errorf("the list is called %q", text)
		}
		if price := g.text("#results .price-night"); !strings.ContainsAny(price, "۰۱۲۳۴۵۶۷۸۹") {
			g.t.Errorf("a price reads %q", price)
		}
	}
	if g.width < 500 { // on a phone the form is collapsed
		g.click("#search-fold summary")
		g.waitVisible("#search-button")
		g.checkLayout("list with its form")
		g.click("#search-fold summary")
	}
	g.click("#results .card:has(.price-night) .heart")
	g.waitPresent("#results .card:has(.price-night) .heart[aria-pressed=true]:not(:disabled)")
	g.waitPresent("#saved-count:not([hidden])")
}

func (g *guest) openMap() {
	g.t.Helper()
	g.click("nav a[data-page=map]")
	g.waitVisible("#map:not([aria-busy]) .pin")
	g.clickAny(".pin:not([hidden])")
	g.waitVisible("#map-preview .card")
	g.waitVisible("#spotlight-rate")
	g.checkLayout("map")
}

func (g *guest) openSaved() {
	g.t.Helper()
	g.click("nav a[data-page=saved]")
	g.waitVisible("#saved-list .card")
	if n := g.count("#saved-list .card"); n != 1 {
		g.t.Errorf("%d hotels are saved", n)
	}
	g.checkLayout("saved")
	g.click("#saved-list .card-name a")
	g.waitVisible("#hotel")
	g.waitPresent("#part-prices")
	g.checkLayout("hotel")
}

// book opens the booking page; the link works once.
func (g *guest) book() {
	g.t.Helper()
	hotel := g.text("#hotel-name")
	// The guest clicks again as soon as the button is enabled. The page counts its requests until
	// it unloads.
	eval[bool](g, `(() => {
		const button = document.getElementById("book-button")
		new MutationObserver(() => button.disabled || button.click()).observe(button, {attributes: true})
		window.fetch = (ask => (url, options) => {
			if (url.endsWith("/handoff")) sessionStorage.setItem("handoffs", Number(sessionStorage.getItem("handoffs")) + 1)
			return ask(url, options)
		})(window.fetch)
		return true
	})()`)
	g.click("#book-button")
	g.waitPresent("html[data-booked=yes]")
	g.waitVisible("#verified")
	if n := eval[string](g, `sessionStorage.getItem("handoffs")`); n != "1" {
		g.t.Errorf("%s handoffs were asked for", n)
	}
	currency := map[string]string{"en": "USD", "ps-AF": "AFN"}[g.locale]
	for fact, want := range map[string]string{"hotel": hotel, "language": g.locale, "currency": currency} {
		if got := g.text("[data-fact=" + fact + "]"); got != want {
			g.t.Errorf("the booking page says %s is %q, not %q", fact, got, want)
		}
	}
	g.checkLayout("book")

	// The page removes the token from the address and from the history.
	entries, err := chromedp.Run(g.tab, chromedp.NavigationEntries())
	if err != nil {
		g.t.Fatal(err)
	}
	for _, entry := range entries.Entries {
		if strings.Contains(entry.URL, "h=") {
			g.t.Errorf("the history holds %s", entry.URL)
		}
	}

	g.allowError("/_local/tenant/bootstrap")
	g.click("#use-again")
	g.waitVisible("#again-outcome #problem")
	if code := g.text("#again-outcome .problem-code"); !strings.HasSuffix(code, "HANDOFF_REPLAYED") {
		g.t.Errorf("the second use: %s", code)
	}
	g.checkLayout("book")
	g.click("#back-to-search")
	g.waitVisible("#hotel")
	g.checkLayout("hotel again") // the language is unchanged
}

// Another browser with the same link is rejected and learns no data of the guest.
func TestBookingLink_ReuseIsRejectedWithoutDetails(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{})
	g.searchFirstCity()
	g.click("#results .card:has(.price-night) .card-name a")
	g.click("#book-button")
	g.waitPresent("html[data-booked=yes]")
	hotel := g.text("[data-fact=hotel]")

	finder := openPage(t, viewOptions{})
	finder.allowError("/_local/tenant/bootstrap")
	finder.navigate("/book?" + g.bookingLink().RawQuery)
	finder.waitPresent("html[data-booked=refused]")
	finder.waitVisible("#problem .problem-request")
	if shown := finder.text("main"); strings.Contains(shown, hotel) || !strings.Contains(shown, "HANDOFF_REPLAYED") {
		t.Errorf("the finder reads: %s", shown)
	}
	if at := eval[string](finder, "location.search"); at != "" {
		t.Errorf("the token stays in the address: %s", at)
	}
	finder.waitVisible("#back-to-search")
}

// bookingLink returns the URL of the booking page with the token, as the browser requested it.
func (g *guest) bookingLink() *url.URL {
	g.t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, asked := range g.requests {
		if u, err := url.Parse(asked); err == nil && u.Path == "/book" && u.Query().Get("h") != "" {
			return u
		}
	}
	g.t.Fatal("nobody went to the booking page")
	return nil
}
