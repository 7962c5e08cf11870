package browser

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// gated holds back the answers of requests whose address matches a pattern until the test calls let(). held counts them.
const gated = `(pattern => {
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
	// What waits for nothing but the gate is done when requests made after it have been answered.
	window.let = async () => {
		open()
		for (let i = 0; i < 3; i++) await ask("/icon.svg")
		return true
	}
	return true
})`

func (g *guest) holds(pattern string) {
	g.t.Helper()
	eval[bool](g, gated+"("+pattern+")")
}

func (g *guest) lets() {
	g.t.Helper()
	if _, err := chromedp.Run(g.tab, chromedp.Evaluate[bool]("let()", chromedp.EvalAwaitPromise)); err != nil {
		g.t.Fatal(err)
	}
}

// goesTo changes the address behind "#".
func (g *guest) goesTo(place string) {
	g.t.Helper()
	eval[bool](g, `(location.hash = `+quote(place)+`, true)`)
}

func (g *guest) becomes(condition string) {
	g.t.Helper()
	g.do("waiting for "+condition, step(chromedp.Poll[bool](condition)))
}

func TestWhatNobodyCanMeanInAnAddressHasADefault(t *testing.T) {
	t.Parallel()
	g := visit(t, look{plain: true})
	for _, wrong := range []string{
		"in=9999-99-99&sort=evil&kind=evil&starRating=x", "in=2027-02-30&out=2027-03-01&guestRatingMin=x&maxPrice=-5",
		"in=9999-12-31&page=1e9&adults=-1", "in=2001-01-01&children=1&ages=5.5", "out=9999-12-31",
	} {
		g.goesTo("#/")
		g.sees("#popular-cities .city")
		g.goesTo("#/search?place=Kabul&country=AF&" + wrong)
		g.becomes(`document.getElementById("results")?.ariaBusy === null`)
		if shown := g.text("main"); g.count("#problem") > 0 || !strings.Contains(shown, "in Kabul") {
			t.Errorf("%s: %s", wrong, shown)
		}
	}
	g.goesTo("#/search?place=" + `<img src=x onerror="document.title='done'">`)
	g.becomes(`document.getElementById("results-title")?.textContent.includes("<img src=x")`)
	if g.count("main img") > 0 {
		t.Error("the address has become markup")
	}
	g.opens("/?lang=constructor&currency=toString&plain=1")
	g.has("html[data-ready]")
	g.sees("#popular-cities .city")
}

func TestAHotelThatComesTooLateIsNotShown(t *testing.T) {
	t.Parallel()
	g := visit(t, look{plain: true})
	g.looksAround()
	g.holds(`/\/hotels\/ppt_/`)
	g.clicks("#results .card-name a")
	g.becomes("held === 1")
	eval[bool](g, "(history.back(), true)")
	g.answered()
	g.lets()
	if g.count("#hotel") > 0 || g.count("#results .card") == 0 {
		t.Errorf("at %s the guest sees %s", eval[string](g, "location.hash"), g.text("main"))
	}
}

// A browser may be told to keep nothing: then even asking for its storage fails.
func TestABrowserThatKeepsNothingBooksAllTheSame(t *testing.T) {
	t.Parallel()
	g := visit(t, look{plain: true})
	g.do("taking the storage away", func(ctx context.Context, tab *chromedp.Target) (none chromedp.Void, err error) {
		_, err = cdp.Call(ctx, tab, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
			Source: `for (const name of ["sessionStorage", "localStorage"]) Object.defineProperty(window, name, {get() { throw new DOMException("refused", "SecurityError") }})`})
		return none, err
	})
	g.opens("/?plain=1")
	g.looksAround()
	g.clicks("#results .card:has(.price-night) .card-name a")
	g.clicks("#book-button")
	g.has("html[data-booked=yes]")
}

func TestWhatOneTabForgetsTheOthersForget(t *testing.T) {
	t.Parallel()
	g := visit(t, look{plain: true})
	g.looksAround()
	g.clicks("#results .card .heart")
	g.has("#saved-count:not([hidden])")

	other := &guest{house: g.house, t: t, locale: g.locale, width: g.width}
	var leave context.CancelFunc
	other.tab, leave = chromedp.NewContext(g.tab, chromedp.WithListener(other.hear))
	t.Cleanup(leave)
	t.Cleanup(other.settle)
	if err := chromedp.Do(other.tab); err != nil {
		t.Fatal(err)
	}
	other.opens("/?plain=1#/saved")
	other.sees("#saved-list .card")

	g.clicks("#forget")
	other.sees("#empty")
	if n := other.count("#saved-count:not([hidden])"); n > 0 {
		t.Error("the other tab still counts what was saved")
	}
}

// An exception that nobody catches is written to the console, and fails the test.
func TestAnApiThatIsGoneIsSaidNotThrown(t *testing.T) {
	t.Parallel()
	g := visit(t, look{plain: true})
	eval[bool](g, `(window.fetch = (ask => (url, options) => url.startsWith("/bff/") ? Promise.reject(new TypeError("gone")) : ask(url, options))(window.fetch), true)`)
	g.clicks("#forget")
	g.becomes(`document.getElementById("toast").textContent === "The service cannot be reached."`)
	g.goesTo("#/search?place=Kabul")
	g.sees("#problem")
	g.goesTo("#/")
	g.sees("#popular-cities .city") // without what was looked at before
}

func TestWhoeverUsesTheKeyboardStaysThere(t *testing.T) {
	t.Parallel()
	g := visit(t, look{plain: true})
	g.goesTo("#/search?place=Afghanistan&kind=country&country=AF")
	g.answered()
	where := func() string { return eval[string](g, `document.activeElement.id + " " + scrollY`) }

	g.do("choosing an order", chromedp.SendKeys(chromedp.CSS("#sort"), "Guest"))
	g.becomes(`location.hash.includes("rating-desc")`)
	g.answered()
	if at := where(); at != "sort 0" {
		t.Errorf("after another order: %s", at)
	}
	eval[bool](g, `(document.getElementById("next-page").focus(), true)`)
	g.do("turning the page", chromedp.KeyEvent("\r"))
	g.becomes(`location.hash.includes("page=2") && document.activeElement.id !== "next-page"`) // the address is another before the page is
	g.answered()
	if at := where(); at != "view 0" {
		t.Errorf("on the next page: %s", at)
	}
}

func TestLongWordsGoOnInTheNextLine(t *testing.T) {
	t.Parallel()
	for _, width := range []int64{1280, 390} {
		g := visit(t, look{plain: true, width: width})
		eval[bool](g, `(window.fetch = (ask => async (url, options) => {
			const answer = await ask(url, options)
			if (!/\/(search|hotels\/ppt_\w+)(\?|$)/.test(url)) return answer
			const long = JSON.stringify(await answer.json(), (key, value) => ["name", "brandName"].includes(key) && value.default ? {default: "W".repeat(500) + "<b>\u202e"} :
				["address", "city", "description"].includes(key) ? "W".repeat(500) : value)
			return new Response(long, {headers: answer.headers})
		})(window.fetch), true)`)
		g.goesTo("#/search?country=AF&place=Kabul")
		g.answered()
		g.isLaidOut("list of long words")
		g.clicks("#results .card-name a")
		g.sees("#hotel")
		g.isLaidOut("hotel of long words")
	}
}

func TestTheMapEndsWhereTheWorldDoes(t *testing.T) {
	t.Parallel()
	g := visit(t, look{plain: true})
	g.goesTo("#/map?place=Kabul&country=AF")
	g.sees("#map:not([aria-busy]) .pin")
	eval[bool](g, `(() => {
		const press = (key, times) => { while (times--) document.getElementById("map").dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true})) }
		press("-", 6)
		press("ArrowRight", 200)
		press("+", 6)
		return true
	})()`)
	g.becomes(`document.getElementById("map-title").textContent === "0 places on the map"`)
}
