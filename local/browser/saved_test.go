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

// lockTables locks the tables of saved properties and consent until release is called or the test
// ends.
func (g *guest) lockTables() (release func()) {
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

// wait503 waits until a number of requests for a path have received a 503.
func (g *guest) wait503(path string, times int) {
	g.t.Helper()
	g.run(path+" is refused", discardResult(chromedp.Poll[bool](fmt.Sprintf(
		`performance.getEntriesByType("resource").filter(e => e.name.endsWith(%q) && e.responseStatus === 503).length >= %d`, path, times))))
}

func TestWishlist_SaveRetriesAfter503(t *testing.T) {
	g := openPage(t, viewOptions{})
	g.allowError(web.BasePath + "/wishlist")
	g.searchFirstCity()

	release := g.lockTables()
	g.click("#results .heart")
	g.wait503("/wishlist", 1)
	release()
	g.waitPresent("#results .heart[aria-pressed=true]:not(:disabled)")
	g.waitPresent("#saved-count:not([hidden])")
}

func TestWishlist_FailedSaveShowsErrorAndCanBeRetried(t *testing.T) {
	g := openPage(t, viewOptions{})
	g.allowError(web.BasePath + "/wishlist")
	g.allowError(web.BasePath + "/session/clear")
	g.searchFirstCity()
	const sorry = "The service is not available at present."

	release := g.lockTables()
	g.click("#results .heart")
	g.wait503("/wishlist", 2)
	g.waitPresent("#results .heart[aria-pressed=false]:not(:disabled)")
	if said := g.text("#toast.shown"); said != sorry {
		t.Errorf("of the heart the guest reads %q", said)
	}
	release()
	g.click("#results .heart")
	g.waitPresent("#results .heart[aria-pressed=true]")

	g.lockTables()
	g.click("#forget")
	g.wait503("/session/clear", 1)
	g.run("waiting for the excuse", discardResult(chromedp.Poll[bool](fmt.Sprintf(`document.getElementById("toast").textContent === %q`, sorry))))
}
