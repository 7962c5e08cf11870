package bots

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"melmastoon.ghasi.io/bff-consumer/shared/bot"
)

// The plot's measures in its own units.
const (
	left, top     = 90.0, 60.0
	width, height = 800.0, 320.0
	bins          = 20   // of a twentieth each
	least         = 1e-5 // share at the foot of the axis, which is logarithmic: what matters is rare
	bar           = width / bins / 2.6
)

// writePlot draws how the scores of humans and of bots are spread.
func writePlot(file string, results []*result) error {
	people, programs := make([]float64, bins+1), make([]float64, bins+1)
	for _, r := range results {
		into := people
		if r.kind == bots {
			into = programs
		}
		for score, rows := range r.scores {
			into[min(bins, int(math.Round(score*bins)))] += float64(rows)
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(plot(people, programs)), 0o644)
}

func plot(people, programs []float64) string {
	var s strings.Builder
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %v %v" font-family="sans-serif" font-size="12">`+"\n",
		left+width+40, top+height+60)
	fmt.Fprintf(&s, `<rect width="100%%" height="100%%" fill="#fff"/>`+"\n")
	fmt.Fprintf(&s, `<text x="%v" y="20" font-size="15">Scores by user agent and headers: share of clients</text>`+"\n", left)
	axes(&s)
	for i, at := range []struct {
		name, colour string
		rows         []float64
	}{{"humans", "#2a78b5", people}, {"bots", "#d1603d", programs}} {
		total := 0.0
		for _, rows := range at.rows {
			total += rows
		}
		fmt.Fprintf(&s, `<rect x="%v" y="30" width="12" height="12" fill="%s"/><text x="%v" y="40">%s, %v rows</text>`+"\n",
			left+float64(i)*160, at.colour, left+float64(i)*160+18, at.name, total)
		for bin, rows := range at.rows {
			if rows == 0 {
				continue
			}
			y := across(rows / total)
			x := left + float64(bin)*width/bins + (float64(i)-1)*bar
			fmt.Fprintf(&s, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"><title>%s at %.2f: %v of %v</title></rect>`+"\n",
				x, y, bar, top+height-y, at.colour, at.name, float64(bin)/bins, rows, total)
		}
	}
	s.WriteString("</svg>\n")
	return s.String()
}

// axes draws the shares, the scores and the two thresholds.
func axes(s *strings.Builder) {
	for share := 1.0; share > least/2; share /= 10 {
		y := across(share)
		fmt.Fprintf(s, `<line x1="%v" x2="%v" y1="%.1f" y2="%.1f" stroke="#ddd"/><text x="%v" y="%.1f" text-anchor="end">%.5g %%</text>`+"\n",
			left, left+width, y, y, left-28, y+4, share*100)
	}
	for tenth := range 11 {
		x := left + float64(tenth)*width/10
		fmt.Fprintf(s, `<text x="%v" y="%v" text-anchor="middle">%.1f</text>`+"\n", x, top+height+18, float64(tenth)/10)
	}
	for _, at := range []struct {
		score float64
		name  string
	}{{bot.FromSuspect, "suspect"}, {bot.FromBot, "bot"}} {
		x := left + at.score*width
		fmt.Fprintf(s, `<line x1="%v" x2="%v" y1="%v" y2="%v" stroke="#444" stroke-dasharray="4 3"/><text x="%v" y="%v">%s from %v</text>`+"\n",
			x, x, top, top+height, x+4, top-6, at.name, at.score)
	}
	fmt.Fprintf(s, `<text x="%v" y="%v" text-anchor="middle">score</text>`+"\n", left+width/2, top+height+40)
}

// across is where a share stands.
func across(share float64) float64 {
	return top + height*math.Log10(math.Max(share, least))/math.Log10(least)
}
