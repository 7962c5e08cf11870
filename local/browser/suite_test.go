// Package browser tests the page with a real browser against the whole system. All tests share one
// system and one browser. Each test is a guest with its own cookie jar and searches cities that no
// other test searches, so a fault of one test affects no cache entry of another. Tests that change
// shared state (switches, tenants, locks) run first, one after another; the other tests run in
// parallel after them.
package browser

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	_ "melmastoon.ghasi.io/bff-consumer/local/functions" // of the system under test
	"melmastoon.ghasi.io/bff-consumer/local/server"
	"melmastoon.ghasi.io/bff-consumer/shared/testkit/localstores"
)

var update = flag.Bool("update", false, "write the pictures of the README")

const root = "../.."

// harness is shared by all tests: the system's URL, and the browser as chromedp's context.
type harness struct {
	url     string
	env     map[string]string // of the functions
	browser context.Context
}

var errNoBrowser = errors.New("no browser is installed: run \"apt-get install chromium\" (macOS: \"brew install --cask chromium\"), or name one in BROWSER_PATH")

var cleanup []func() // run in reverse order after the tests

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	for i := len(cleanup) - 1; i >= 0; i-- {
		cleanup[i]()
	}
	os.Exit(code)
}

var startHarness = sync.OnceValues(func() (*harness, error) {
	path, err := findBrowser()
	if err != nil {
		return nil, err
	}
	s, env, err := startSystem()
	if err != nil {
		return nil, err
	}
	ctx, err := startBrowser(path)
	return &harness{s.URL, env, ctx}, err
})

// sharedHarness returns the system and the browser. If a store or the browser is not installed, it
// skips the test; with CI set the test fails.
func sharedHarness(t *testing.T) *harness {
	t.Helper()
	h, err := startHarness()
	_, missing := errors.AsType[localstores.MissingError](err)
	if (missing || errors.Is(err, errNoBrowser)) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func findBrowser() (string, error) {
	for _, name := range []string{
		os.Getenv("BROWSER_PATH"), "chromium", "chromium-browser", "google-chrome", "google-chrome-stable",
		"/Applications/Chromium.app/Contents/MacOS/Chromium", "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
	} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errNoBrowser
}

// startSystem starts the whole system with its own stores and reads the environment of its
// functions. Rate limits are off, because all tests together are a single client with many
// requests.
func startSystem() (*server.Server, map[string]string, error) {
	for _, name := range []string{"DATABASE_URL", "REDIS_ADDR", "PUBSUB_EMULATOR_HOST", "PUBSUB_PROJECT"} {
		os.Unsetenv(name)
	}
	dir, err := os.MkdirTemp("", "browser")
	if err != nil {
		return nil, nil, err
	}
	cleanup = append(cleanup, func() { os.RemoveAll(dir) })
	// for root, Postgres runs as another user and must reach its directory
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, nil, err
	}
	state := filepath.Join(dir, "state")
	s, err := server.Start(context.Background(), server.Options{Root: root, State: state, Out: io.Discard})
	if err != nil {
		return nil, nil, err
	}
	cleanup = append(cleanup, s.Stop)
	req, err := http.NewRequest(http.MethodPut, s.URL+"/_local/flags", strings.NewReader(`{"limitsEnabled":false}`))
	if err != nil {
		return nil, nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, nil, err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("flags: %s", res.Status)
	}
	text, err := os.ReadFile(filepath.Join(state, "run.json"))
	if err != nil {
		return nil, nil, err
	}
	var run struct{ Env map[string]string }
	err = json.Unmarshal(text, &run)
	return s, run.Env, err
}

// startBrowser starts a browser with an empty profile, which is deleted at the end. The browser
// resolves no host name, so no request of the browser itself or of a faulty page leaves the
// machine.
func startBrowser(path string) (context.Context, error) {
	allocator, kill := chromedp.NewExecAllocator(context.Background(),
		chromedp.ExecPath(path), chromedp.Headless, chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.NoSandbox, // the browser runs as root in containers and shows only this repository's pages
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("disable-extensions", true),
		chromedp.Flag("disable-renderer-backgrounding", true), chromedp.Flag("disable-background-timer-throttling", true),
		chromedp.Flag("force-color-profile", "srgb"),
		// The browser's own page behind the address bar costs more per window than the tested page;
		// no test uses it.
		chromedp.Flag("disable-features", "WebUIOmniboxPopup,WebUIOmniboxAimPopup"),
	)
	// A browser newer than chromedp sends events that chromedp does not know.
	ctx, quit := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	cleanup = append(cleanup, kill, quit)
	return ctx, chromedp.Do(ctx)
}
