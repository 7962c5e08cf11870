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
func TestARefusalSpeaksTheLanguageOfThePage(t *testing.T) {
	t.Parallel()
	for locale, details := range map[string]int{"en": 1, "ps-AF": 0} {
		t.Run(locale, func(t *testing.T) {
			t.Parallel()
			g := visit(t, look{locale: locale, plain: true})
			g.refused("/_local/tenant/bootstrap")
			g.opens("/book?h=no.token")
			g.sees("#problem .problem-title")
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
func TestAHotelThatIsNoneLeadsBack(t *testing.T) {
	t.Parallel()
	g := visit(t, look{})
	none := "ppt_01J0P5RM852MGM000CQ96N1T99"
	g.refused("/bff/consumer/v1/hotels/" + none)
	eval[string](g, `location.hash = "#/hotel/`+none+`"`)
	g.sees("#problem .problem-title")
	if n := g.count("#problem button"); n != 0 {
		t.Error("it can be tried again")
	}
	g.clicks(".crumb a")
	g.sees("#popular-cities .city")
}

// Whoever zooms out by one click after another must not hit another button because a note appeared.
func TestTheNoteOfTheMapLeavesItsButtonsWhereTheyAre(t *testing.T) {
	t.Parallel()
	g := visit(t, look{})
	g.clicks("nav a[data-page=map]")
	g.sees("#map:not([aria-busy]) .pin")
	where := `Math.round(document.getElementById("zoom-out").getBoundingClientRect().top + scrollY)`
	before := eval[int](g, where)
	for range 8 { // more than a city is from what is too wide to search
		g.clicks("#zoom-out")
	}
	g.sees("#map-note .note") // once the clicks have ended
	if after := eval[int](g, where); after != before {
		t.Errorf("the button was at %d px, and is at %d px", before, after)
	}
}

// Nobody has to choose a language that the browser named already.
func TestTheFirstVisitIsInTheBrowsersLanguage(t *testing.T) {
	t.Parallel()
	for accepted, locale := range map[string]string{"fr-CH,de": "fr", "sw,ps": "ps-AF", "sw": "en"} {
		t.Run(accepted, func(t *testing.T) {
			t.Parallel()
			g := visit(t, look{})
			g.do("accepting "+accepted, func(ctx context.Context, tab *chromedp.Target) (none chromedp.Void, err error) {
				_, err = cdp.Call(ctx, tab, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{
					UserAgent: eval[string](g, "navigator.userAgent"), AcceptLanguage: accepted,
				})
				return none, err
			})
			g.do("forgetting", step(chromedp.Evaluate[bool](`fetch("/bff/consumer/v1/session/clear", {method: "POST"}).then(a => (sessionStorage.clear(), a.ok))`, chromedp.EvalAwaitPromise)))
			g.opens("/")
			g.has("html[data-ready]")
			if got := eval[string](g, "document.documentElement.lang"); got != locale {
				t.Errorf("the page speaks %s", got)
			}
		})
	}
}

// The filters are those of the place, and the digits in their names those of the page.
func TestFiltersAreThoseOfThePlace(t *testing.T) {
	t.Parallel()
	g := visit(t, look{locale: "ps-AF", plain: true})
	g.looksAround()
	g.sees("#filters summary")
	names := eval[string](g, `[...document.querySelectorAll("#filters label span")].map(e => e.textContent).join("\n")`)
	if !strings.Contains(names, "Shahr-e Naw") || strings.Contains(names, "Aino Mena") { // the one is in Kabul, the other in Kandahar
		t.Errorf("neighbourhoods of Kabul: %s", names)
	}
	if strings.ContainsAny(names, "0123456789") {
		t.Errorf("digits of another script: %s", names)
	}
}

// The stay that was searched goes along to what was saved, and into the booking.
func TestTheStayGoesAlong(t *testing.T) {
	t.Parallel()
	g := visit(t, look{})
	g.do("choosing three adults", chromedp.SetValue(chromedp.CSS("#adults"), "3"))
	g.looksFor("Kandahar")
	g.clicks("#results .card:has(.price-night) .heart")
	g.has("#saved-count:not([hidden])")
	g.clicks("nav a[data-page=saved]")
	g.clicks("#saved-list .card-name a")
	g.sees("#book-button")
	g.clicks("#book-button")
	g.has("html[data-booked=yes]")
	if adults := g.text("[data-fact=adults]"); adults != "3" {
		t.Errorf("%s adults are booked", adults)
	}
}

// An address may ask for anything, also for what every object of JavaScript has.
func TestALanguageThatIsNoneIsNotSpoken(t *testing.T) {
	t.Parallel()
	g := visit(t, look{})
	g.opens("/?lang=constructor")
	g.has("html[data-ready]")
	if got := eval[string](g, "document.documentElement.lang"); got != "en" {
		t.Errorf("the page speaks %s", got)
	}
}
