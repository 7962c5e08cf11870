package browser

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

const actionTimeout = 20 * time.Second // per action, on a loaded machine

// guest is a browser tab with its own cookie jar that shows the page.
type guest struct {
	*harness
	t      *testing.T
	tab    context.Context
	locale string
	width  int64

	mu            sync.Mutex                   // handleEvent runs in another goroutine
	requests      []string                     // URL of every request
	pending       map[network.RequestID]string // method and path of requests without a response
	responses     []string                     // newest last
	failures      []string
	allowedErrors []string // paths with expected error responses
}

// viewOptions are the settings of a guest's browser.
type viewOptions struct {
	locale    string // default en
	width     int64  // pixels; default 1280
	height    int64  // pixels; default of a usual window
	dark      bool
	plain     bool   // without the inside view
	userAgent string // default of the browser
}

// openPage opens the start page. At the end of the test it fails the test for an unexpected error
// and for a request to another host.
func openPage(t *testing.T, l viewOptions) *guest {
	t.Helper()
	h := sharedHarness(t)
	g := &guest{harness: h, t: t, locale: l.locale, width: l.width}
	currency := "USD"
	if g.locale == "" {
		g.locale = "en"
	}
	if g.locale == "ps-AF" {
		currency = "AFN"
	}
	height := cmp.Or(l.height, 900)
	emulate := []chromedp.EmulateViewportOption{}
	if g.width == 0 {
		g.width = 1280
	} else if g.width < 500 {
		height = cmp.Or(l.height, 844)
		emulate = append(emulate, chromedp.EmulateMobile)
	}
	var leave context.CancelFunc
	g.tab, leave = chromedp.NewContext(h.browser, chromedp.WithNewBrowserContext(), chromedp.WithListener(g.handleEvent))
	t.Cleanup(leave)
	t.Cleanup(g.checkFailures)
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	if err := chromedp.Do(g.tab, chromedp.EmulateViewport(g.width, height, emulate...), func(ctx context.Context, tab *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, tab, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}})
		if err == nil && l.userAgent != "" {
			_, err = cdp.Call(ctx, tab, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: l.userAgent})
		}
		return chromedp.Void{}, err
	}); err != nil {
		t.Fatal(err)
	}
	address := "/?lang=" + g.locale + "&currency=" + currency
	if l.plain {
		address += "&plain=1"
	}
	g.navigate(address)
	g.waitPresent("html[data-ready]")
	return g
}

// handleEvent records an event of the tab. chromedp calls it between messages, so it must not call
// the browser.
func (g *guest) handleEvent(event any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	trouble := func(format string, args ...any) { g.failures = append(g.failures, fmt.Sprintf(format, args...)) }
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		g.requests = append(g.requests, e.Request.URL)
		u, err := url.Parse(e.Request.URL)
		if err != nil || u.Scheme != "data" && u.Scheme+"://"+u.Host != g.url {
			trouble("a request to %s", e.Request.URL)
			return
		}
		if g.pending == nil {
			g.pending = map[network.RequestID]string{}
		}
		g.pending[e.RequestID] = e.Request.Method + " " + u.Path
	case *network.EventResponseReceived:
		g.endRequest(e.RequestID, fmt.Sprint(e.Response.Status))
	case *network.EventLoadingFailed:
		g.endRequest(e.RequestID, e.ErrorText)
	case *network.EventWebSocketCreated:
		trouble("a socket to %s", e.URL)
	case *runtime.EventExceptionThrown:
		trouble("an exception: %s %v", e.ExceptionDetails.Text, e.ExceptionDetails.Exception)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
			for _, arg := range e.Args {
				trouble("console.%s: %s %s", e.Type, arg.Description, arg.Value)
			}
		}
	case *log.EventEntryAdded:
		if u, err := url.Parse(e.Entry.URL); err == nil && strings.HasPrefix(e.Entry.Text, "Failed to load resource") && slices.Contains(g.allowedErrors, u.Path) {
			return
		}
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			trouble("console: %s %s", e.Entry.Text, e.Entry.URL)
		}
	}
}

// endRequest records the result of a request.
func (g *guest) endRequest(request network.RequestID, how string) {
	if asked, ok := g.pending[request]; ok {
		delete(g.pending, request)
		g.responses = append(g.responses, asked+": "+how)
	}
}

// recentTraffic returns the latest requests and responses, for failure messages.
func (g *guest) recentTraffic() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	last := g.responses[max(0, len(g.responses)-30):]
	return fmt.Sprintf("answered last:\n%s\nnot answered: %q", strings.Join(last, "\n"), slices.Collect(maps.Values(g.pending)))
}

// allowError accepts error responses of a path from now on. The browser logs each error to the
// console.
func (g *guest) allowError(path string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.allowedErrors = append(g.allowedErrors, path)
}

func (g *guest) checkFailures() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.requests) == 0 {
		g.t.Error("no request was heard of: nobody watched this tab")
	}
	for _, trouble := range g.failures {
		g.t.Error(trouble)
	}
}

// run runs actions. It fails the test with the recent clicks, requests and responses and the
// visible text.
func (g *guest) run(what string, steps ...chromedp.Action[chromedp.Void]) {
	g.t.Helper()
	g.runWithin(actionTimeout, what, steps...)
}

func (g *guest) runWithin(limit time.Duration, what string, steps ...chromedp.Action[chromedp.Void]) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.tab, limit)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		shown, _ := chromedp.Run(g.tab, chromedp.Evaluate[string](`location.href + "\nclicked last: " + (window.clicked ?? []).slice(-3).join(" ") +
			"\nsaid last: " + document.getElementById("announcer")?.textContent + "\n" + document.querySelector("main")?.innerText.slice(0, 1500)`))
		g.t.Fatalf("%s: %v\n%s\nthe page: %s", what, err, g.recentTraffic(), shown)
	}
}

// navigate opens a path of the page; path begins with a slash.
func (g *guest) navigate(path string) {
	g.t.Helper()
	g.run("going to "+path, chromedp.Navigate(g.url+path))
}

// waitVisible waits until an element is visible; has waits until an element exists.
func (g *guest) waitVisible(selector string) {
	g.t.Helper()
	g.run("waiting to see "+selector, chromedp.WaitVisible(chromedp.CSS(selector)))
}

func (g *guest) waitPresent(selector string) {
	g.t.Helper()
	g.run("waiting for "+selector, chromedp.WaitReady(chromedp.CSS(selector)))
}

// click clicks in the middle of the first element of a selector, once the element stands still and
// no other element covers it.
func (g *guest) click(selector string) {
	g.t.Helper()
	g.clickFirst(selector, 1)
}

// clickAny clicks the first of several elements that is not covered, because pins on a map may
// overlap.
func (g *guest) clickAny(selector string) {
	g.t.Helper()
	g.clickFirst(selector, 1000)
}

func (g *guest) clickFirst(selector string, first int) {
	g.t.Helper()
	g.run("clicking "+selector, func(ctx context.Context, tab *chromedp.Target) (none chromedp.Void, err error) {
		at, err := chromedp.PollFunction[[]float64](`(selector, first) => {
			window.clicked ??= (addEventListener("click", e => clicked.push(e.target.cloneNode().outerHTML), true), [])
			for (const e of [...document.querySelectorAll(selector)].slice(0, first)) {
				let box = e.getBoundingClientRect()
				if (box.top < 0 || box.bottom > innerHeight) {
					e.scrollIntoView({block: "center", behavior: "instant"})
					box = e.getBoundingClientRect()
				}
				const x = box.left + box.width / 2, y = box.top + box.height / 2
				const still = e.clicked?.x === x && e.clicked?.y === y // same position as in the previous frame
				e.clicked = {x, y}
				if (still && e.contains(document.elementFromPoint(x, y))) return [x, y]
			}
		}`, chromedp.WithPollingArgs(selector, first))(ctx, tab)
		if err != nil {
			return none, err
		}
		return chromedp.MouseClickXY(at[0], at[1])(ctx, tab)
	})
}

// text returns the visible text of an element.
func (g *guest) text(selector string) string {
	g.t.Helper()
	g.waitPresent(selector)
	return eval[string](g, `document.querySelector(`+quote(selector)+`).innerText.trim()`)
}

func (g *guest) attribute(selector, name string) string {
	g.t.Helper()
	g.waitPresent(selector)
	return eval[string](g, `document.querySelector(`+quote(selector)+`).getAttribute(`+quote(name)+`) ?? ""`)
}

func (g *guest) count(selector string) int {
	g.t.Helper()
	return eval[int](g, `document.querySelectorAll(`+quote(selector)+`).length`)
}

// eval evaluates JavaScript in the page.
func eval[T any](g *guest, expression string) T {
	g.t.Helper()
	value, err := chromedp.Run(g.tab, chromedp.Evaluate[T](expression))
	if err != nil {
		g.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// selectors are ASCII, so Go's quoting is valid JavaScript
func quote(s string) string { return fmt.Sprintf("%q", s) }
