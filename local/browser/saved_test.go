package browser

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/jackc/pgx/v5"

	"melmastoon.ghasi.io/bff-consumer/shared/web"
)

// locks keeps everybody else from what guests save and decide, until release is called or the test ends.
func (g *guest) locks() (release func()) {
	g.t.Helper()
	conn, err := pgx.Connect(g.t.Context(), g.env["DATABASE_URL"])
	if err != nil {
		g.t.Fatal(err)
	}
	release = sync.OnceFunc(func() { conn.Close(context.Background()) })
	g.t.Cleanup(release)
	if _, err := conn.Exec(g.t.Context(), "BEGIN; LOCK TABLE bff_consumer.wishlist_anonymous, bff_consumer.session_choice"); err != nil {
		g.t.Fatal(err)
	}
	return release
}

// isRefused waits until so many requests for a path were answered with 503.
func (g *guest) isRefused(path string, times int) {
	g.t.Helper()
	g.do(path+" is refused", step(chromedp.Poll[bool](fmt.Sprintf(
		`performance.getEntriesByType("resource").filter(e => e.name.endsWith(%q) && e.responseStatus === 503).length >= %d`, path, times))))
}

func TestASaveIsTriedAgainWhenTheServiceAsksForAMoment(t *testing.T) {
	g := visit(t, look{})
	g.refused(web.Base + "/wishlist")
	g.looksAround()

	release := g.locks()
	g.clicks("#results .heart")
	g.isRefused("/wishlist", 1)
	release()
	g.has("#results .heart[aria-pressed=true]:not(:disabled)")
	g.has("#saved-count:not([hidden])")
}

func TestWhatCannotBeRecordedIsSaidAndCanBeClickedAgain(t *testing.T) {
	g := visit(t, look{})
	g.refused(web.Base + "/wishlist")
	g.refused(web.Base + "/session/clear")
	g.looksAround()
	const sorry = "The service is not available at present."

	release := g.locks()
	g.clicks("#results .heart")
	g.isRefused("/wishlist", 2)
	g.has("#results .heart[aria-pressed=false]:not(:disabled)")
	if said := g.text("#toast.shown"); said != sorry {
		t.Errorf("of the heart the guest reads %q", said)
	}
	release()
	g.clicks("#results .heart")
	g.has("#results .heart[aria-pressed=true]")

	g.locks()
	g.clicks("#forget")
	g.isRefused("/session/clear", 1)
	g.do("waiting for the excuse", step(chromedp.Poll[bool](fmt.Sprintf(`document.getElementById("toast").textContent === %q`, sorry))))
}
