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

const maxPictureBytes = 300_000 // bytes per picture, for readers of the README with slow connections

// The test writes the pictures of the README with -update, from the page that the other tests use.
func TestPictures_MatchReadme(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, scene := range map[string]func(*testing.T) *guest{"list": listScene, "hotel-ps-AF": hotelScene} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join("docs", "pictures", name+".png")
			if *update {
				if err := os.WriteFile(filepath.Join(root, path), scene(t).screenshot(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			kept, err := os.ReadFile(filepath.Join(root, path))
			if err != nil {
				t.Fatal(err)
			}
			picture, err := png.DecodeConfig(bytes.NewReader(kept))
			if err != nil || picture.Width != 1280 || len(kept) > maxPictureBytes {
				t.Errorf("%v, %d px wide, %d bytes", err, picture.Width, len(kept))
			}
			if !strings.Contains(string(readme), fmt.Sprintf("](%s)", filepath.ToSlash(path))) {
				t.Errorf("the README does not show %s", path)
			}
		})
	}
}

// listScene shows a list beside the inside view, after a few requests, so the charts are not empty.
func listScene(t *testing.T) *guest {
	g := openPage(t, viewOptions{height: 1180})
	for _, city := range []string{"Herat", "Kandahar", "Kabul", "Kabul"} {
		g.searchPlace(city)
	}
	g.waitPresent("#inside-charts svg")
	g.waitVisible("#results .card .price-night")
	g.waitPresent("#inside-stream details")
	g.waitPresent(`#inside-request [data-cache="HIT"]`)
	return g
}

func hotelScene(t *testing.T) *guest {
	g := openPage(t, viewOptions{locale: "ps-AF", plain: true})
	g.searchFirstCity()
	g.click("#results .card:has(.price-night) .card-name a")
	g.waitVisible("#hotel")
	g.waitPresent(".calendar-body:not([aria-busy])")
	return g
}

// screenshot returns a picture of the tab from the top of the page.
func (g *guest) screenshot() []byte {
	g.t.Helper()
	eval[bool](g, `(scrollTo(0, 0), true)`)
	shot, err := chromedp.Run(g.tab, chromedp.CaptureScreenshot())
	if err != nil {
		g.t.Fatal(err)
	}
	return shot
}
