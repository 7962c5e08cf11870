package browser

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// holdResponsesJS delays the responses of requests with a matching URL until the test calls let().
// held counts the delayed responses.
const holdResponsesJS = `(pattern => {
	const ask = window.fetch
	let open
	const gate = new Promise(resolve => open = resolve)
	window.held = 0
	window.fetch = async (url, options) => {
		const matches = pattern.test(url)
		if (matches) window.held++
		const answer = await ask(url, options)
		if (matches) await gate
		return answer
	}
	// Released responses are processed once later requests have their response.
	window.let = async () => {
		open()
		for (let i = 0; i < 3; i++) await ask("/icon.svg")
		return true
	}
	return true
})`

func (g *guest) holdResponses(pattern string) {
	g.t.Helper()
	eval[bool](g, holdResponsesJS+"("+pattern+")")
}

func (g *guest) releaseResponses() {
	g.t.Helper()
	if _, err := chromedp.Run(g.tab, chromedp.Evaluate[bool]("let()", chromedp.EvalAwaitPromise)); err != nil {
		g.t.Fatal(err)
	}
}

// setHash changes the URL's fragment.
func (g *guest) setHash(place string) {
	g.t.Helper()
	eval[bool](g, `(location.hash = `+quote(place)+`, true)`)
}

func (g *guest) waitUntil(condition string) {
	g.t.Helper()
	g.run("waiting for "+condition, discardResult(chromedp.Poll[bool](condition)))
}

func TestAddress_InvalidParametersFallBackToDefaults(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{plain: true})
	for _, wrong := range []string{
		"in=9999-99-99&sort=evil&kind=evil&starRating=x", "in=2027-02-30&out=2027-03-01&guestRatingMin=x&maxPrice=-5",
		"in=9999-12-31&page=1e9&adults=-1", "in=2001-01-01&children=1&ages=5.5", "out=9999-12-31",
	} {
		g.setHash("#/")
		g.waitVisible("#popular-cities .city")
		g.setHash("#/search?place=Kabul&country=AF&" + wrong)
		g.waitUntil(`document.getElementById("results")?.ariaBusy === null`)
		if shown := g.text("main"); g.count("#problem") > 0 || !strings.Contains(shown, "in Kabul") {
			t.Errorf("%s: %s", wrong, shown)
		}
	}
	g.setHash("#/search?place=" + `<img src=x onerror="document.title='done'">`)
	g.waitUntil(`document.getElementById("results-title")?.textContent.includes("<img src=x")`)
	if g.count("main img") > 0 {
		t.Error("the address has become markup")
	}
	g.navigate("/?lang=constructor&currency=toString&plain=1")
	g.waitPresent("html[data-ready]")
	g.waitVisible("#popular-cities .city")
}

func TestHotelPage_LateResponseIsDiscarded(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{plain: true})
	g.searchFirstCity()
	g.holdResponses(`/\/hotels\/ppt_/`)
	g.click("#results .card-name a")
	g.waitUntil("held === 1")
	eval[bool](g, "(history.back(), true)")
	g.waitResults()
	g.releaseResponses()
	if g.count("#hotel") > 0 || g.count("#results .card") == 0 {
		t.Errorf("at %s the guest sees %s", eval[string](g, "location.hash"), g.text("main"))
	}
}

// A browser may block storage; then even access to localStorage throws.
func TestBooking_WorksWithoutWebStorage(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{plain: true})
	g.run("taking the storage away", func(ctx context.Context, tab *chromedp.Target) (none chromedp.Void, err error) {
		_, err = cdp.Call(ctx, tab, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: `for (const name of ["sessionStorage", "localStorage"]) Object.defineProperty(window, name, {get() { throw new DOMException("refused", "SecurityError") }})`})
		return none, err
	})
	g.navigate("/?plain=1")
	g.searchFirstCity()
	g.click("#results .card:has(.price-night) .card-name a")
	g.click("#book-button")
	g.waitPresent("html[data-booked=yes]")
}

func TestForget_ClearsOtherTabs(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{plain: true})
	g.searchFirstCity()
	g.click("#results .card .heart")
	g.waitPresent("#saved-count:not([hidden])")

	other := &guest{harness: g.harness, t: t, locale: g.locale, width: g.width}
	var leave context.CancelFunc
	other.tab, leave = chromedp.NewContext(g.tab, chromedp.WithListener(other.handleEvent))
	t.Cleanup(leave)
	t.Cleanup(other.checkFailures)
	if err := chromedp.Do(other.tab); err != nil {
		t.Fatal(err)
	}
	other.navigate("/?plain=1#/saved")
	other.waitVisible("#saved-list .card")

	g.click("#forget")
	other.waitVisible("#empty")
	if n := other.count("#saved-count:not([hidden])"); n > 0 {
		t.Error("the other tab still counts what was saved")
	}
}

// The browser logs an uncaught exception to the console, which fails the test.
func TestUnreachableAPI_ShowsMessageWithoutException(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{plain: true})
	eval[bool](g, `(window.fetch = (ask => (url, options) => url.startsWith("/bff/") ? Promise.reject(new TypeError("gone")) : ask(url, options))(window.fetch), true)`)
	g.click("#forget")
	g.waitUntil(`document.getElementById("toast").textContent === "The service cannot be reached."`)
	g.setHash("#/search?place=Kabul")
	g.waitVisible("#problem")
	g.setHash("#/")
	g.waitVisible("#popular-cities .city") // without recently viewed properties
}

func TestKeyboard_FocusAndScrollAreKept(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{plain: true})
	g.setHash("#/search?place=Afghanistan&kind=country&country=AF")
	g.waitResults()
	where := func() string { return eval[string](g, `document.activeElement.id + " " + scrollY`) }

	g.run("choosing an order", chromedp.SendKeys(chromedp.CSS("#sort"), "Guest"))
	g.waitUntil(`location.hash.includes("rating-desc")`)
	g.waitResults()
	if at := where(); at != "sort 0" {
		t.Errorf("after another order: %s", at)
	}
	eval[bool](g, `(document.getElementById("next-page").focus(), true)`)
	g.run("turning the page", chromedp.KeyEvent("\r"))
	// the URL changes before the page
	g.waitUntil(`location.hash.includes("page=2") && document.activeElement.id !== "next-page"`)
	g.waitResults()
	if at := where(); at != "view 0" {
		t.Errorf("on the next page: %s", at)
	}
}

func TestLayout_LongWordsWrap(t *testing.T) {
	t.Parallel()
	for _, width := range []int64{1280, 390} {
		g := openPage(t, viewOptions{plain: true, width: width})
		eval[bool](g, `(window.fetch = (ask => async (url, options) => {
			const answer = await ask(url, options)
			if (!/\/(search|hotels\/ppt_\w+)(\?|$)/.test(url)) return answer
			const long = JSON.stringify(await answer.json(), (key, value) => ["name", "brandName"].includes(key) && value.default ? {default: "W".repeat(500) + "<b>\u202e"} :
				["address", "city", "description"].includes(key) ? "W".repeat(500) : value)
			return new Response(long, {headers: answer.headers})
		})(window.fetch), true)`)
		g.setHash("#/search?country=AF&place=Kabul")
		g.waitResults()
		g.checkLayout("list of long words")
		g.click("#results .card-name a")
		g.waitVisible("#hotel")
		g.checkLayout("hotel of long words")
	}
}

func TestMap_StopsAtEdgeOfWorld(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{plain: true})
	g.setHash("#/map?place=Kabul&country=AF")
	g.waitVisible("#map:not([aria-busy]) .pin")
	eval[bool](g, `(() => {
		const press = (key, times) => { while (times--) document.getElementById("map").dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true})) }
		press("-", 6)
		press("ArrowRight", 200)
		press("+", 6)
		return true
	})()`)
	g.waitUntil(`document.getElementById("map-title").textContent === "0 places on the map"`)
}
