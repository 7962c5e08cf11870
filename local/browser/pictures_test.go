package browser

import (
	"bytes"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

const largest = 300_000 // bytes of a picture: the README is read on slow lines too

// The pictures of the README: written with -update, from the same page that the other tests use.
func TestPicturesOfTheReadme(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, scene := range map[string]func(*testing.T) *guest{"list": list, "hotel-ps-AF": hotelInPashto} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("docs", "pictures", name+".png")
			if *update {
				if err := os.WriteFile(filepath.Join(root, path), scene(t).picture(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			kept, err := os.ReadFile(filepath.Join(root, path))
			if err != nil {
				t.Fatal(err)
			}
			picture, err := png.DecodeConfig(bytes.NewReader(kept))
			if err != nil || picture.Width != 1280 || len(kept) > largest {
				t.Errorf("%v, %d px wide, %d bytes", err, picture.Width, len(kept))
			}
			if !strings.Contains(string(readme), fmt.Sprintf("](%s)", filepath.ToSlash(path))) {
				t.Errorf("the README does not show %s", path)
			}
		})
	}
}

// list is a list beside the inside view, after a few requests, so that the charts have something to show.
func list(t *testing.T) *guest {
	g := visit(t, look{height: 1180})
	for _, city := range []string{"Herat", "Kandahar", "Kabul", "Kabul"} {
		g.looksFor(city)
	}
	g.has("#inside-charts svg")
	g.sees("#results .card .price-night")
	g.has("#inside-stream details")
	g.has(`#inside-request [data-cache="HIT"]`)
	return g
}

func hotelInPashto(t *testing.T) *guest {
	g := visit(t, look{locale: "ps-AF", plain: true})
	g.looksAround()
	g.clicks("#results .card:has(.price-night) .card-name a")
	g.sees("#hotel")
	g.has(".calendar-body:not([aria-busy])")
	return g
}

// picture is what the tab shows, from its top.
func (g *guest) picture() []byte {
	g.t.Helper()
	eval[bool](g, `(scrollTo(0, 0), true)`)
	shot, err := chromedp.Run(g.tab, chromedp.CaptureScreenshot())
	if err != nil {
		g.t.Fatal(err)
	}
	return shot
}
