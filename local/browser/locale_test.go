package browser

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// The details of problems are English: a page in another language has its own sentence, and stands at its own side.
func TestProblem_ShownInPageLanguage(t *testing.T) {
	t.Parallel()
	for locale, details := range map[string]int{"en": 1, "ps-AF": 0} {
		t.Run(locale, func(t *testing.T) {
			t.Parallel()
			g := openPage(t, viewOptions{locale: locale, plain: true})
			g.allowError("/_local/tenant/bootstrap")
			g.navigate("/book?h=no.token")
			g.waitVisible("#problem .problem-title")
			if n := g.count("#problem .problem-detail"); n != details {
				t.Errorf("%d details: %s", n, g.text("#problem"))
			}
			align := map[string]string{"en": "start", "ps-AF": "right"}[locale]
			if got := eval[string](g, `getComputedStyle(document.querySelector(".problem-code")).textAlign`); got != align {
				t.Errorf("the code stands at %s", got)
			}
		})
	}
}

// What is not there is not there a moment later: there is a way back, and no button.
func TestHotelPage_UnknownHotelLinksBack(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{})
	none := "ppt_01J0P5RM852MGM000CQ96N1T99"
	g.allowError("/bff/consumer/v1/hotels/" + none)
	eval[string](g, `location.hash = "#/hotel/`+none+`"`)
	g.waitVisible("#problem .problem-title")
	if n := g.count("#problem button"); n != 0 {
		t.Error("it can be tried again")
	}
	g.click(".crumb a")
	g.waitVisible("#popular-cities .city")
}

// Whoever zooms out by one click after another must not hit another button because a note appeared.
func TestMap_NoteDoesNotMoveButtons(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{})
	g.click("nav a[data-page=map]")
	g.waitVisible("#map:not([aria-busy]) .pin")
	where := `Math.round(document.getElementById("zoom-out").getBoundingClientRect().top + scrollY)`
	before := eval[int](g, where)
	for range 8 { // more than a city is from what is too wide to search
		g.click("#zoom-out")
	}
	g.waitVisible("#map-note .note") // once the clicks have ended
	if after := eval[int](g, where); after != before {
		t.Errorf("the button was at %d px, and is at %d px", before, after)
	}
}

// Nobody has to choose a language that the browser named already.
func TestLocale_FirstVisitFollowsBrowserLanguage(t *testing.T) {
	t.Parallel()
	for accepted, locale := range map[string]string{"fr-CH,de": "fr", "sw,ps": "ps-AF", "sw": "en"} {
		t.Run(accepted, func(t *testing.T) {
			t.Parallel()
			g := openPage(t, viewOptions{})
			g.run("accepting "+accepted, func(ctx context.Context, tab *chromedp.Target) (none chromedp.Void, err error) {
				_, err = cdp.Call(ctx, tab, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{
					UserAgent: eval[string](g, "navigator.userAgent"), AcceptLanguage: accepted,
				})
				return none, err
			})
			g.run("forgetting", discardResult(chromedp.Evaluate[bool](`fetch("/bff/consumer/v1/session/clear", {method: "POST"}).then(a => (sessionStorage.clear(), a.ok))`, chromedp.EvalAwaitPromise)))
			g.navigate("/")
			g.waitPresent("html[data-ready]")
			if got := eval[string](g, "document.documentElement.lang"); got != locale {
				t.Errorf("the page speaks %s", got)
			}
		})
	}
}

// The filters are those of the place, and the digits in their names those of the page.
func TestFilters_MatchPlaceAndPageDigits(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{locale: "ps-AF", plain: true})
	g.searchFirstCity()
	g.waitVisible("#filters summary")
	names := eval[string](g, `[...document.querySelectorAll("#filters label span")].map(e => e.textContent).join("\n")`)
	if !strings.Contains(names, "Shahr-e Naw") || strings.Contains(names, "Aino Mena") { // the one is in Kabul, the other in Kandahar
		t.Errorf("neighbourhoods of Kabul: %s", names)
	}
	if strings.ContainsAny(names, "0123456789") {
		t.Errorf("digits of another script: %s", names)
	}
}

// The stay that was searched goes along to what was saved, and into the booking.
func TestStay_IsKeptFromSearchToBooking(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{})
	g.run("choosing three adults", chromedp.SetValue(chromedp.CSS("#adults"), "3"))
	g.searchPlace("Kandahar")
	g.click("#results .card:has(.price-night) .heart")
	g.waitPresent("#saved-count:not([hidden])")
	g.click("nav a[data-page=saved]")
	g.click("#saved-list .card-name a")
	g.waitVisible("#book-button")
	g.click("#book-button")
	g.waitPresent("html[data-booked=yes]")
	if adults := g.text("[data-fact=adults]"); adults != "3" {
		t.Errorf("%s adults are booked", adults)
	}
}

// An address may ask for anything, also for what every object of JavaScript has.
func TestLocale_UnknownLanguageFallsBackToEnglish(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{})
	g.navigate("/?lang=constructor")
	g.waitPresent("html[data-ready]")
	if got := eval[string](g, "document.documentElement.lang"); got != "en" {
		t.Errorf("the page speaks %s", got)
	}
}
