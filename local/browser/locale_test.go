package browser

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// Problem details are in English. A page in another language shows its own sentence in its own
// direction.
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

// A missing property offers a link back and no retry button, because a retry cannot succeed.
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

// A note that appears while a guest clicks to zoom out must not move another button under the
// mouse.
func TestMap_NoteDoesNotMoveButtons(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{})
	g.click("nav a[data-page=map]")
	g.waitVisible("#map:not([aria-busy]) .pin")
	where := `Math.round(document.getElementById("zoom-out").getBoundingClientRect().top + scrollY)`
	before := eval[int](g, where)
	for range 8 { // more steps than from a city to an area that is too wide to search
		g.click("#zoom-out")
	}
	g.waitVisible("#map-note .note") // appears after the last click
	if after := eval[int](g, where); after != before {
		t.Errorf("the button was at %d px, and is at %d px", before, after)
	}
}

// The page uses the language of the browser without a choice.
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

// The filters belong to the place, and their names use the digits of the page's language.
func TestFilters_MatchPlaceAndPageDigits(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{locale: "ps-AF", plain: true})
	g.searchFirstCity()
	g.waitVisible("#filters summary")
	names := eval[string](g, `[...document.querySelectorAll("#filters label span")].map(e => e.textContent).join("\n")`)
	// a district of Kabul and a district of Kandahar
	if !strings.Contains(names, "Shahr-e Naw") || strings.Contains(names, "Aino Mena") {
		t.Errorf("neighbourhoods of Kabul: %s", names)
	}
	if strings.ContainsAny(names, "0123456789") {
		t.Errorf("digits of another script: %s", names)
	}
}

// The dates and guests of the search carry over to the saved list and to the booking.
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

// A URL may name any page, also a property of every JavaScript object.
func TestLocale_UnknownLanguageFallsBackToEnglish(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{})
	g.navigate("/?lang=constructor")
	g.waitPresent("html[data-ready]")
	if got := eval[string](g, "document.documentElement.lang"); got != "en" {
		t.Errorf("the page speaks %s", got)
	}
}
