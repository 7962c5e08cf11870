package browser

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// setFlags sets flags of the system and restores the suite's flags at the end of the test.
func (g *guest) setFlags(set, back string) {
	g.t.Helper()
	put := func(body string) {
		req, err := http.NewRequest(http.MethodPut, g.url+"/_local/flags", strings.NewReader(body))
		if err != nil {
			g.t.Fatal(err)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil || res.StatusCode != http.StatusOK {
			g.t.Fatalf("%s: %v %v", body, res, err)
		}
		res.Body.Close()
	}
	put(set)
	g.t.Cleanup(func() { put(back) })
}

// The puzzle is small to keep the test short; the guest waits for the solution all the same.
func TestChallenge_SolvedOnceThenSearchContinues(t *testing.T) {
	g := openPage(t, viewOptions{userAgent: "curl/8.5.0"})
	g.setFlags(`{"challenge":{"difficulty":12}}`, `{"challenge":null,"botMode":null}`)
	for _, path := range []string{"/search", "/facets", "/telemetry/page-view", "/telemetry/funnel", "/telemetry/click", "/session"} {
		g.allowError("/bff/consumer/v1" + path)
	}
	eval[bool](g, `(() => {
		window.workers = 0
		window.Worker = class extends Worker { constructor(...from) { super(...from); window.workers++ } }
		new MutationObserver(() => window.checked ||= !document.getElementById("checking").hidden).observe(document.getElementById("checking"), {attributes: true})
		return true
	})()`)
	g.setSwitch("bot-mode", "enforce", "bots enforce")
	g.searchPlace("Isfahan")
	g.waitVisible("#results .card .price-night")
	g.waitUntil(`document.getElementById("checking").hidden`)
	if n, told := eval[int](g, "workers"), eval[bool](g, "window.checked === true"); n != 1 || !told {
		t.Errorf("%d puzzles were solved, and the guest was told: %t", n, told)
	}
	g.setSwitch("bot-mode", "observe", "bots observe")
}

func TestThemePublished_ShownInNextSearch(t *testing.T) {
	g := openPage(t, viewOptions{})
	g.searchPlace("Peshawar")
	g.waitVisible("#results .card")
	tenant := g.attribute("#results .card", "data-tenant")
	card := `#results .card[data-tenant="` + tenant + `"]`
	before := g.attribute(card, "style")
	g.run("choosing the tenant", chromedp.SetValue(chromedp.CSS("#tenant"), tenant))
	g.click("#publish-theme")
	g.waitOutcome("Publish a theme: done")
	g.searchAgain()
	if now := g.attribute(card, "style"); now == before || !strings.HasPrefix(now, "--brand: #") {
		t.Errorf("the colour was %q and is %q", before, now)
	}
}

func TestCampaignMode_SwitchesOnAndOff(t *testing.T) {
	g := openPage(t, viewOptions{})
	for _, want := range []bool{true, false} {
		eval[bool](g, `(document.getElementById("switch-outcome").textContent = "", true)`)
		g.click("#campaign")
		g.waitOutcome("campaign mode: done")
		res, err := http.Get(g.url + "/_local/flags")
		if err != nil {
			t.Fatal(err)
		}
		var flags struct {
			CampaignMode bool `json:"campaignMode"`
		}
		err = json.NewDecoder(res.Body).Decode(&flags)
		res.Body.Close()
		if shown := eval[bool](g, `document.getElementById("campaign").checked`); err != nil || flags.CampaignMode != want || shown != want {
			t.Errorf("switched to %t: it is %t, and is shown as %t; %v", want, flags.CampaignMode, shown, err)
		}
	}
}

// The view counts each event once, however often it refreshes. After a restart of the system the
// view starts from zero.
func TestTelemetryStream_HasOneReaderAtATime(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{})
	g.waitPresent("#inside-stream details")
	g.holdResponses(`/_local\/telemetry/`)
	eval[bool](g, `(() => { for (let i = 0; i < 3; i++) document.dispatchEvent(new Event("visibilitychange")); return true })()`)
	g.waitUntil("held > 0")
	g.releaseResponses()
	if n := eval[int](g, "held"); n != 1 {
		t.Errorf("%d looks at once", n)
	}
	eval[bool](g, `(window.fetch = (ask => (url, options) => {
		if (!url.startsWith("/_local/telemetry")) return ask(url, options)
		window.since = [...(window.since ?? []), new URLSearchParams(url.split("?")[1]).get("since")]
		return Promise.resolve(new Response(JSON.stringify({messages: [], cursor: "0"})))
	})(window.fetch), true)`)
	g.waitUntil(`window.since?.length > 1`)
	if since := eval[[]string](g, "since"); since[0] == "0" || since[1] != "0" {
		t.Errorf("after a new beginning it asked for what came after %v", since)
	}
}

func TestAPIReference_TryItOutCallsRunningServer(t *testing.T) {
	t.Parallel()
	g := openPage(t, viewOptions{plain: true})
	g.navigate("/docs")
	g.waitVisible(".opblock")
	const session = "#operations-session-Session"
	g.click(session + " .opblock-summary-control")
	g.waitVisible(session + " .model-example") // the button has no effect before the example is visible
	g.click(session + " .execute")
	g.waitPresent(session + " .live-responses-table .response-col_status")
	if status, url := g.text(session+" .live-responses-table tbody .response-col_status"), g.text(session+" .request-url pre"); !strings.HasPrefix(status, "200") || url != g.url+"/bff/consumer/v1/session" {
		t.Errorf("%s: %s", url, status)
	}
}
